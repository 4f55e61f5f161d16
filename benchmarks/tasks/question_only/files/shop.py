def net(cents):
    return cents


def gross_price(cents):
    return cents * 119 // 100
