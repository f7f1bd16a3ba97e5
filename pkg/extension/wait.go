package extension

import "time"

// Wait is the error that an actuator returns when it cannot continue until something else has happened. The state of the operation stays
// Processing, with the reason in its description, until an event of a watched object requeues the object.
type Wait struct {
	// Reason says what the operation waits for. The text should only change when something has changed.
	Reason string
	// After is when to call the actuator again even without an event. Zero means after a minute.
	After time.Duration
}

// Error implements error.
func (w *Wait) Error() string { return "wait: " + w.Reason }
