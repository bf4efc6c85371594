"""The caller's rows <-> numbers <-> encoded points, the rules applied to them, and the model that labels them."""
