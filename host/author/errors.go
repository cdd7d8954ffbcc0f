package author

// RequestError says that what was asked for cannot be had.
type RequestError struct{ Msg string }

func (e *RequestError) Error() string {
	if e.Msg == "" {
		return "bad request"
	}
	return e.Msg
}
