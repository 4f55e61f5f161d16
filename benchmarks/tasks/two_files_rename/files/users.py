USERS = {1: ("Ada", "Lovelace"), 2: ("Alan", "Turing")}


def get_user_name(user_id: int) -> str:
    first, last = USERS[user_id]
    return f"{first} {last}"
