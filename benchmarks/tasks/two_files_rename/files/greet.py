from users import get_user_name


def greet(user_id: int) -> str:
    return "Hello, " + get_user_name(user_id) + "!"


def farewell(user_id: int) -> str:
    return "Bye, " + get_user_name(user_id) + "."
