package extension

import "time"

// Wait is the error by which an actuator says that it has done what it can for now, and that something else has to happen first. The
// operation stays in progress, with the reason in its description, until an event brings the object back.
type Wait struct {
	// Reason says what is waited for, in words that are the same until something changes.
	Reason string
	// After is when to look again even if there is no event. Zero means after a minute.
	After time.Duration
}

// Error implements error.
func (w *Wait) Error() string { return "wait: " + w.Reason }
