package tunnel

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// closeWriter is a connection that can be closed in one direction.
type closeWriter interface{ CloseWrite() error }

// buffers are the buffers of carry.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// pipe copies bytes in both directions until both have ended, or one has failed, and closes both sides. When one direction has ended, the
// other may last for halfClosed, but ends at once if the tunnel itself is closed. It returns the numbers of bytes from a to b and back.
func pipe(a, b io.ReadWriteCloser) (int64, int64) {
	both := func() { sever(a); sever(b) }
	late := time.AfterFunc(halfClosed, both)
	late.Stop() // until one direction has ended
	defer late.Stop()
	half := func() {
		if gone(a) || gone(b) {
			both() // otherwise the end would look as if the other side had closed the stream
		}
		late.Reset(halfClosed)
	}
	var there int64
	var wg sync.WaitGroup
	wg.Go(func() { there = carry(b, a); half() })
	back := carry(a, b)
	half()
	wg.Wait()
	both()
	return there, back
}

// gone says whether the tunnel of a stream is closed.
func gone(side io.ReadWriteCloser) bool {
	stream, ok := side.(*yamux.Stream)
	return ok && stream.Session().IsClosed()
}

// sever closes a side in both directions, and interrupts reads and writes.
func sever(side io.ReadWriteCloser) {
	_ = side.Close()
	if stream, ok := side.(*yamux.Stream); ok {
		_ = stream.SetDeadline(time.Unix(1, 0)) // its Close ends one direction only
	}
}

// carry copies one direction, and closes it at the end. After a failure both sides are closed.
func carry(to, from io.ReadWriteCloser) int64 {
	buffer := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool only has these
	defer buffers.Put(buffer)
	// The wrappers hide ReadFrom and WriteTo, which would allocate another buffer.
	n, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, *buffer)
	switch half := to.(type) {
	case closeWriter:
		err = errors.Join(err, half.CloseWrite())
	case *yamux.Stream:
		err = errors.Join(err, half.Close()) // its Close ends one direction only
	}
	if err != nil {
		sever(to)
		sever(from)
	}
	return n
}
