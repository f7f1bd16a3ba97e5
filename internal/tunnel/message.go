package tunnel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxMessage is far more than any message has.
const maxMessage = 4 << 10

// protocolVersion changes when old and new sides do not understand each other any more.
const protocolVersion = 1

// hello is what both sides of a connection say first, before streams begin.
type hello struct {
	Version int `json:"version"`
	// ID tells instances apart. Whoever dials connects to each instance once.
	ID string `json:"id"`
	// Replicas is how many instances of the server there are.
	Replicas int `json:"replicas,omitempty"`
}

// requestType says what a stream is for.
type requestType string

const (
	// requestDial asks an agent for a connection to an address in the networks of the shoot.
	requestDial requestType = "dial"
	// requestAPIServer asks a server for a connection to the kube-apiserver.
	requestAPIServer requestType = "apiserver"
	// requestEcho asks for the bytes that follow.
	requestEcho requestType = "echo"
	// requestDrain says that the side which sends it wants no more streams.
	requestDrain requestType = "drain"
)

// request begins each stream.
type request struct {
	Type    requestType `json:"type"`
	Address string      `json:"address,omitempty"`
}

// replyCode says how a request went.
type replyCode string

const (
	replyOK          replyCode = "ok"
	replyForbidden   replyCode = "forbidden"
	replyUnreachable replyCode = "unreachable"
)

// reply answers requests for connections. Bytes follow if it is OK.
type reply struct {
	Code    replyCode `json:"code"`
	Message string    `json:"message,omitempty"`
}

// err returns what a reply means to whoever asked.
func (r reply) err() error {
	switch r.Code {
	case replyOK:
		return nil
	case replyForbidden:
		return fmt.Errorf("%w: %s", errForbidden, r.Message)
	case replyUnreachable:
	}
	return fmt.Errorf("%w: %s", errUnreachable, r.Message)
}

var (
	// errForbidden says that an address is not one of those that may be reached.
	errForbidden = errors.New("not allowed")
	// errUnreachable says that nobody answers at an address.
	errUnreachable = errors.New("not reachable")
)

// writeMessage sends a message: its length in two bytes, and JSON.
func writeMessage(w io.Writer, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("a message of %d bytes is too long", len(data))
	}
	frame := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(data)), uint16(len(data))) //nolint:gosec // checked above
	_, err = w.Write(append(frame, data...))
	return err
}

// readMessage reads a message, and not a byte more.
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
