package tunnel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxMessage is the maximum length of a message, far more than any has.
const maxMessage = 4 << 10

// protocolVersion changes with incompatible changes of the protocol.
const protocolVersion = 1

// hello is the first message of both sides of a connection, before streams begin.
type hello struct {
	Version int `json:"version"`
	// ID identifies the instance. Clients connect to each instance of the server once.
	ID string `json:"id"`
	// Replicas is how many instances of the server there are.
	Replicas int `json:"replicas,omitempty"`
	// Error is why the connection is refused, and what to do.
	Error string `json:"error,omitempty"`
}

// requestType says what a stream is for.
type requestType string

const (
	// requestDial requests a connection from an agent to an address in the networks of the shoot.
	requestDial requestType = "dial"
	// requestAPIServer requests a connection from a server to the kube-apiserver.
	requestAPIServer requestType = "apiserver"
	// requestEcho requests that the bytes that follow are sent back.
	requestEcho requestType = "echo"
	// requestDrain requests that no more streams are opened to the side that sends it.
	requestDrain requestType = "drain"
)

// request is the first message of each stream.
type request struct {
	Type    requestType `json:"type"`
	Address string      `json:"address,omitempty"`
}

// replyCode is the result of a request.
type replyCode string

const (
	replyOK          replyCode = "ok"
	replyForbidden   replyCode = "forbidden"
	replyUnreachable replyCode = "unreachable"
	replyBusy        replyCode = "busy"
)

// reply is the response to a request for a connection. The bytes of the connection follow if it is OK.
type reply struct {
	Code    replyCode `json:"code"`
	Message string    `json:"message,omitempty"`
}

// err returns the reply as an error, or nil if it is OK.
func (r reply) err() error {
	switch r.Code {
	case replyOK:
		return nil
	case replyForbidden:
		return fmt.Errorf("%w: %s", errForbidden, r.Message)
	case replyBusy:
		return fmt.Errorf("%w: %s", errBusy, r.Message)
	case replyUnreachable:
	}
	return fmt.Errorf("%w: %s", errUnreachable, r.Message)
}

var (
	// errForbidden says that connections to an address are not allowed.
	errForbidden = errors.New("not allowed")
	// errUnreachable says that connecting to an address failed.
	errUnreachable = errors.New("not reachable")
)

// writeMessage writes a message: its length in two bytes, and JSON.
func writeMessage(w io.Writer, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("write message: it has %d bytes, more than the maximum", len(data))
	}
	frame := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(data)), uint16(len(data))) //nolint:gosec // checked above
	_, err = w.Write(append(frame, data...))
	return err
}

// readMessage reads a message, and no byte after it.
func readMessage(r io.Reader, into any) error {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	size := binary.BigEndian.Uint16(length[:])
	if size == 0 || size > maxMessage {
		return fmt.Errorf("read message: it has a length of %d", size)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	return nil
}
