package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"k8s.io/utils/clock"
)

const (
	// handshakeTimeout limits the handshakes before streams.
	handshakeTimeout = 10 * time.Second
	// requestTimeout is how long a new stream may take to send its request.
	requestTimeout = 10 * time.Second
	// echoInterval and echoTimeout determine how soon a dead connection is closed: their sum after its last byte at the latest.
	echoInterval, echoTimeout = 3 * time.Second, 6 * time.Second
	// writeTimeout is how long a write to a connection may block.
	writeTimeout = 15 * time.Second
	// streamWindow is how many bytes of a stream may be sent before they are read. It limits the memory for a slow reader, and the
	// throughput of a stream over long distances: 20 MB/s at a round trip of 50 ms.
	streamWindow = 1 << 20
	// halfClosed is how long a stream may live in one direction when the other has ended. It frees what a broken connection leaves.
	halfClosed = time.Minute
	// uploadWindow is streamWindow of connections of an apiserver-proxy at the server: requests of pods are small, and pods are many.
	uploadWindow = 256 << 10
	// refusalTimeout is how long the other side may take to receive that a stream is refused.
	refusalTimeout = 2 * time.Second
	// maxID is the maximum length of the name of an instance, that of a host's name.
	maxID = 253
)

// replacementTimeout is how long a terminating side stays in use until the other side is connected to another instance. A new pod on another
// node takes about half of it. When a cluster is deleted or hibernated there is no other instance, and it should not wait for long.
const replacementTimeout = 10 * time.Second

// errDisconnected says that no other side is connected.
var errDisconnected = errors.New("no other side is connected to the tunnel")

// peer is the other side of a connection.
type peer struct {
	session *yamux.Session
	id      string
	// healthy says whether an echo came back lately, drained whether it gets streams only if there is no other peer.
	healthy, drained atomic.Bool
	// received is when bytes were last received, in Unix nanoseconds.
	received *atomic.Int64
	limits   streamLimits
	served   counter
}

// receiver is a connection that records when bytes are received, and ends when a frame is not allowed.
type receiver struct {
	net.Conn
	last   *atomic.Int64
	frames *frames
}

func (r receiver) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if n > 0 {
		r.last.Store(time.Now().UnixNano())
		if bad := r.frames.check(b[:n]); bad != nil {
			return 0, bad
		}
	}
	return n, err
}

// exchangeHellos exchanges the first messages of a connection.
func exchangeHellos(conn net.Conn, mine hello) (hello, error) {
	mine.Version = protocolVersion
	theirs := hello{}
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return theirs, err
	}
	if err := writeMessage(conn, mine); err != nil {
		return theirs, fmt.Errorf("send hello: %w", err)
	}
	if err := readMessage(conn, &theirs); err != nil {
		return theirs, err
	}
	if theirs.Error != "" {
		return theirs, fmt.Errorf("the other side refuses the connection: %s", theirs.Error)
	}
	if len(theirs.ID) > maxID {
		return theirs, fmt.Errorf("the name of the other side has %d bytes, more than %d", len(theirs.ID), maxID)
	}
	if theirs.Version != protocolVersion || theirs.ID == "" {
		return theirs, fmt.Errorf("the other side has version %d of the protocol, want %d", theirs.Version, protocolVersion)
	}
	return theirs, conn.SetDeadline(time.Time{})
}

// newPeer starts multiplexing streams over a connection. The side that has dialed is the client. The window is that of streams to this side.
func newPeer(conn net.Conn, id string, client bool, window uint32, limits streamLimits) (*peer, error) {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false // see watch
	config.ConnectionWriteTimeout = writeTimeout
	config.MaxStreamWindowSize = window
	config.StreamCloseTimeout = halfClosed
	config.LogOutput = io.Discard // it also returns the errors
	start := yamux.Server
	if client {
		start = yamux.Client
	}
	received := &atomic.Int64{}
	session, err := start(receiver{conn, received, &frames{}}, config)
	if err != nil {
		return nil, err
	}
	return &peer{session: session, id: id, received: received, limits: limits}, nil
}

// refused records that a limit was reached.
func (p *peer) refused(reason string) {
	if p.limits.refused != nil {
		p.limits.refused(reason)
	}
}

// full says whether there are so many streams that no more are possible.
func (p *peer) full() bool { return p.limits.total > 0 && p.session.NumStreams() > p.limits.total }

// open opens a stream for a request.
func (p *peer) open(req request) (*yamux.Stream, error) {
	if p.full() {
		return nil, fmt.Errorf("open stream: %w: the other side does not close its streams", errBusy)
	}
	stream, err := p.session.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	if err := writeMessage(stream, req); err != nil {
		_ = stream.Close()
		return nil, fmt.Errorf("send request: %w", err)
	}
	return stream, nil
}

// connect opens a stream, and returns when the other side has connected to the requested address, or when the context ends.
func (p *peer) connect(ctx context.Context, req request) (*yamux.Stream, error) {
	stream, err := p.openWithin(ctx, req)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var response reply
	if err := readMessage(stream, &response); err != nil {
		_ = stream.Close()
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if err := response.err(); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}

// openWithin is open with a context. Without one, open blocks for as long as a connection exists that accepts no bytes.
func (p *peer) openWithin(ctx context.Context, req request) (*yamux.Stream, error) {
	type result struct {
		stream *yamux.Stream
		err    error
	}
	opened := make(chan result)
	go func() {
		stream, err := p.open(req)
		select {
		case opened <- result{stream, err}:
		case <-ctx.Done():
			if err == nil {
				_ = stream.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.stream, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// echo sends bytes through a new stream, and returns when they come back. It closes the connection if no byte at all is received in time: if it
// accepts no bytes, not even a stream can be opened. On a slow connection an echo may just be queued behind other streams.
func (p *peer) echo(within time.Duration) error {
	over := make(chan struct{})
	defer close(over)
	go func() {
		if silent(p.received, within, over) {
			p.abandon()
		}
	}()
	stream, err := p.open(request{Type: requestEcho})
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // it is not needed any more
	sent, got := make([]byte, 16), make([]byte, 16)
	_, _ = rand.Read(sent) // never fails
	if _, err := stream.Write(sent); err != nil {
		return err
	}
	if _, err := io.ReadFull(stream, got); err != nil {
		return err
	}
	if !bytes.Equal(sent, got) {
		return errors.New("the echo differs from what was sent")
	}
	return nil
}

// serve handles the streams of the other side, and monitors the connection, until the connection or the context ends. The set that the peer
// belongs to is notified when the peer becomes healthy, and when it is drained.
func (p *peer) serve(ctx context.Context, clk clock.WithTicker, set *peers, observe func(time.Duration), handle func(context.Context, *yamux.Stream, request)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = p.session.Close() })
	defer stop()
	go p.watch(ctx, clk, set.notify, observe)
	for {
		stream, err := p.session.AcceptStreamWithContext(ctx)
		if err != nil {
			_ = p.session.Close()
			return
		}
		if p.full() {
			p.refused(refusedUnclosed)
			_ = p.session.Close()
			return
		}
		if !p.served.take(p.limits.opened) {
			p.refused(refusedStreamOfConnection)
			go refuse(stream, fmt.Sprintf("the connection has %d streams; close some", p.limits.opened))
			continue
		}
		go func() {
			defer p.served.give()
			defer stream.Close() //nolint:errcheck // everything was sent
			var req request
			if err := stream.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
				return
			}
			if err := readMessage(stream, &req); err != nil {
				return
			}
			if err := stream.SetReadDeadline(time.Time{}); err != nil {
				return
			}
			switch req.Type {
			case requestEcho:
				_ = stream.SetDeadline(time.Now().Add(echoTimeout))
				_, _ = io.CopyN(stream, stream, 16)
			case requestDrain:
				p.drained.Store(true)
				set.notify()
				set.awaitUndrained(ctx) // the end of the stream is the response
			case requestDial, requestAPIServer:
				handle(ctx, stream, req)
			}
		}()
	}
}

// refuse replies that a limit is reached. The other side has to close the stream then; see streamLimits for one that does not.
func refuse(stream *yamux.Stream, message string) {
	_ = stream.SetWriteDeadline(time.Now().Add(refusalTimeout))
	_ = writeMessage(stream, reply{Code: replyBusy, Message: message})
	_ = stream.Close()
}

// silent waits until no byte was received for a time, and returns true, or until the channel is closed, and returns false.
func silent(received *atomic.Int64, timeout time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		select {
		case <-over:
			return false
		case <-timer.C:
		}
		left := timeout - time.Since(time.Unix(0, received.Load()))
		if left <= 0 {
			return true
		}
		timer.Reset(left)
	}
}

// abandon closes a dead connection.
func (p *peer) abandon() {
	p.healthy.Store(false)
	_ = p.session.Close()
}

// watch sends echoes, and closes the connection when one does not come back and no other byte is received.
func (p *peer) watch(ctx context.Context, clk clock.WithTicker, changed func(), observe func(time.Duration)) {
	ticker := clk.NewTicker(echoInterval)
	defer ticker.Stop()
	for {
		began := clk.Now()
		arrived := p.received.Load()
		switch err := p.echo(echoTimeout); {
		case err == nil:
			observe(clk.Since(began))
			if !p.healthy.Swap(true) {
				changed()
			}
		case p.session.IsClosed() || p.received.Load() == arrived:
			p.abandon()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// drain requests that the other side opens no more streams, and returns when it has another peer, or when the context ends.
func (p *peer) drain(ctx context.Context) {
	stream, err := p.openWithin(ctx, request{Type: requestDrain})
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_, _ = stream.Read(make([]byte, 1))
	_ = stream.Close()
}
