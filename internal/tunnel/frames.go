package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Frames of the multiplexer (yamux) have a header of 12 bytes: version, type, flags (2 bytes), stream (4), length (4). The length of data frames
// is that of the bytes that follow. For each ping, the multiplexer starts a goroutine that ends when the response is sent, and it allocates the
// length of a data frame before it has received the bytes; both are refused here, as no side of a tunnel needs them.
const (
	frameHeader = 12
	frameData   = 0
	framePing   = 2
	// maxFrame is twice what a side writes at once, see buffers.
	maxFrame = 64 << 10
)

var errPing = errors.New("the other side sends pings, which the tunnel does not use")

// frames checks the headers of received frames.
type frames struct {
	header  [frameHeader]byte
	n       int    // bytes of the header so far
	payload uint32 // bytes of the current frame that have not been received
}

// check returns an error if the bytes, which follow those of the last call, contain the header of a frame that is not allowed.
func (f *frames) check(received []byte) error {
	for len(received) > 0 {
		if f.payload > 0 {
			skip := min(uint64(f.payload), uint64(len(received)))
			f.payload -= uint32(skip) //nolint:gosec // it is no more than payload
			received = received[skip:]
			continue
		}
		n := copy(f.header[f.n:], received)
		f.n += n
		received = received[n:]
		if f.n < frameHeader {
			return nil
		}
		f.n = 0
		switch f.header[1] {
		case framePing:
			return errPing
		case frameData:
			f.payload = binary.BigEndian.Uint32(f.header[8:])
			if f.payload > maxFrame {
				return fmt.Errorf("the other side sends a frame of %d bytes, more than %d", f.payload, maxFrame)
			}
		}
	}
	return nil
}
