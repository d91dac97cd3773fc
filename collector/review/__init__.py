"""Cases for people to look at: the store, what picks them, and what is made of people's labels."""
