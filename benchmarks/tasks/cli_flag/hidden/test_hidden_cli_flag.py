from hello import main


def test_without_the_option_nothing_changes(capsys):
    main(["Ada"])
    assert capsys.readouterr().out == "Hello, Ada!\n"


def test_with_it_the_greeting_is_in_capitals(capsys):
    main(["Ada", "--shout"])
    assert capsys.readouterr().out == "HELLO, ADA!\n"
