package delimiter

// KindOfEnd says in words what kind of character a text ends with.
var KindOfEnd = kindOfEnd
