package tunnel

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
	"k8s.io/utils/clock"
)

const (
	// handshakeTimeout is the end of what comes before streams.
	handshakeTimeout = 10 * time.Second
	// requestTimeout is how long a new stream may take to say what it is for.
	requestTimeout = 10 * time.Second
	// echoInterval and echoTimeout decide how soon a dead connection is noticed: their sum after its last byte at the latest.
	echoInterval, echoTimeout = 3 * time.Second, 6 * time.Second
	// writeTimeout ends a connection that takes no bytes.
	writeTimeout = 15 * time.Second
	// streamWindow is how much of a stream may be on its way. It limits the memory that a slow reader takes, and the throughput of a
	// stream over long distances: 20 MB/s at a round trip of 50 ms.
	streamWindow = 1 << 20
	// halfClosed is how long a stream may go on in one direction when the other has ended. It frees what a broken connection leaves.
	halfClosed = time.Minute
)

// replacementTimeout is how long who is to stop goes on for the other side to find another one. A new pod on another node takes about half
// of it. Nothing comes when a cluster is deleted or put to sleep, which should not wait for long.
const replacementTimeout = 10 * time.Second

// errNobody says that no other side is connected.
var errNobody = errors.New("nobody is connected to the tunnel")

// peer is the other side of a connection.
type peer struct {
	session *yamux.Session
	id      string
	// healthy tells whether bytes came back lately, drained whether it is to get streams only if there is nobody else.
	healthy, drained atomic.Bool
	// received is when bytes came last, in nanoseconds since 1970.
	received *atomic.Int64
}

// receiver is a connection that notes when bytes come.
type receiver struct {
	net.Conn
	last *atomic.Int64
}

func (r receiver) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if n > 0 {
		r.last.Store(time.Now().UnixNano())
	}
	return n, err
}

// sayHello exchanges the first messages over a connection.
func sayHello(conn net.Conn, mine hello) (hello, error) {
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
	if theirs.Version != protocolVersion || theirs.ID == "" {
		return theirs, fmt.Errorf("the other side speaks version %d of the protocol, not %d", theirs.Version, protocolVersion)
	}
	return theirs, conn.SetDeadline(time.Time{})
}

// newPeer starts streams over a connection. The side that has dialed is the client.
func newPeer(conn net.Conn, id string, client bool) (*peer, error) {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false // see watch
	config.ConnectionWriteTimeout = writeTimeout
	config.MaxStreamWindowSize = streamWindow
	config.StreamCloseTimeout = halfClosed
	config.LogOutput = io.Discard // what matters is in the errors that it returns
	start := yamux.Server
	if client {
		start = yamux.Client
	}
	received := &atomic.Int64{}
	session, err := start(receiver{conn, received}, config)
	if err != nil {
		return nil, err
	}
	return &peer{session: session, id: id, received: received}, nil
}

// open opens a stream for a request.
func (p *peer) open(req request) (*yamux.Stream, error) {
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

// connect opens a stream, and returns when the other side has a connection to what was asked for, or when the context ends.
func (p *peer) connect(ctx context.Context, req request) (*yamux.Stream, error) {
	stream, err := p.openWithin(ctx, req)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var answer reply
	if err := readMessage(stream, &answer); err != nil {
		_ = stream.Close()
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if err := answer.err(); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}

// openWithin is open for who waits no longer than until the context ends. A connection that takes no bytes keeps open for as long as it is
// there.
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

// echo sends bytes through a stream of its own, and returns when they are back. It closes the connection when nothing at all comes in the
// meantime: one that takes no bytes does not even let a stream be opened, but on a slow one an echo waits behind what others send.
func (p *peer) echo(within time.Duration) error {
	over := make(chan struct{})
	defer close(over)
	go func() {
		if silent(p.received, within, over) {
			p.giveUp()
		}
	}()
	stream, err := p.open(request{Type: requestEcho})
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // it has served its purpose
	sent, got := make([]byte, 16), make([]byte, 16)
	_, _ = rand.Read(sent) // never fails
	if _, err := stream.Write(sent); err != nil {
		return err
	}
	if _, err := io.ReadFull(stream, got); err != nil {
		return err
	}
	if !bytes.Equal(sent, got) {
		return errors.New("other bytes came back than were sent")
	}
	return nil
}

// serve handles the streams of the other side until the connection or the context ends. In the meantime it sees that bytes get
// through. The set, of which the peer is one, is notified when it gets healthy, and when it is drained.
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
		go func() {
			defer stream.Close() //nolint:errcheck // what was to be sent has been
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
				set.awaitFresh(ctx) // the end of the stream is the answer
			case requestDial, requestAPIServer:
				handle(ctx, stream, req)
			}
		}()
	}
}

// silent waits until no byte has come for a while, or that does not matter any more. It returns whether it was the former.
func silent(received *atomic.Int64, patience time.Duration, over <-chan struct{}) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-over:
			return false
		case <-timer.C:
		}
		left := patience - time.Since(time.Unix(0, received.Load()))
		if left <= 0 {
			return true
		}
		timer.Reset(left)
	}
}

// giveUp closes a connection that carries nothing.
func (p *peer) giveUp() {
	p.healthy.Store(false)
	_ = p.session.Close()
}

// watch closes the connection when bytes do not come back.
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
			p.giveUp()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// drain tells the other side to open no more streams, and returns when it can do without, or when the context ends.
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

// peers are the connections that streams can be opened over.
type peers struct {
	mu      sync.Mutex
	all     []*peer
	changed chan struct{}
	// replacement is how long who is to stop goes on for the other side to find another one.
	replacement time.Duration
}

func newPeers() *peers { return &peers{changed: make(chan struct{}), replacement: replacementTimeout} }

// notify wakes up those who wait for a change.
func (s *peers) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

func (s *peers) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *peers) add(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p)
	s.wake()
}

func (s *peers) remove(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *peer) bool { return other == p })
	s.wake()
}

// list returns the peers, and a channel that is closed when something changes.
func (s *peers) list() ([]*peer, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all), s.changed
}

// drain tells all to open no more streams, and returns when they can do without, or when they have had the time to find somebody else.
func (s *peers) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.replacement)
	defer cancel()
	all, _ := s.list()
	var running sync.WaitGroup
	for _, p := range all {
		running.Go(func() { p.drain(ctx) })
	}
	running.Wait()
}

// usable returns the peers that take streams, those with the fewest first, and a channel that is closed when something changes. Those that
// are drained count only if there are no others: they are still there.
func (s *peers) usable() ([]*peer, <-chan struct{}) {
	all, changed := s.list()
	all = slices.DeleteFunc(all, func(p *peer) bool { return !p.healthy.Load() || p.session.IsClosed() })
	if fresh := slices.DeleteFunc(slices.Clone(all), func(p *peer) bool { return p.drained.Load() }); len(fresh) > 0 {
		all = fresh
	}
	slices.SortStableFunc(all, func(a, b *peer) int { return cmp.Compare(a.session.NumStreams(), b.session.NumStreams()) })
	return all, changed
}

// awaitFresh waits until there is a peer that is not drained, or until the context ends.
func (s *peers) awaitFresh(ctx context.Context) {
	for {
		usable, changed := s.usable()
		if len(usable) > 0 && !usable[0].drained.Load() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// connect opens a stream over the best connection. It waits for one until the context ends.
func (s *peers) connect(ctx context.Context, req request) (*yamux.Stream, error) {
	for {
		usable, changed := s.usable()
		for _, p := range usable {
			stream, err := p.connect(ctx, req)
			if err == nil || errors.Is(err, errForbidden) || errors.Is(err, errUnreachable) || ctx.Err() != nil {
				return stream, err
			}
			// The connection broke; the next one may do.
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errNobody
		}
	}
}

// closeWriter is a connection whose one direction can be ended.
type closeWriter interface{ CloseWrite() error }

// buffers are for pipe.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// pipe carries bytes in both directions until both have ended, or one has failed, and closes both sides. When one has ended, the other has
// halfClosed left, and nothing if the tunnel itself is gone. It returns how many bytes went from a to b and back.
func pipe(a, b io.ReadWriteCloser) (int64, int64) {
	both := func() { sever(a); sever(b) }
	late := time.AfterFunc(halfClosed, both)
	late.Stop() // until one direction has ended
	defer late.Stop()
	half := func() {
		if gone(a) || gone(b) {
			both() // its end looks like one that the other side has wanted
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

// gone tells whether the tunnel of a stream has ended.
func gone(side io.ReadWriteCloser) bool {
	stream, ok := side.(*yamux.Stream)
	return ok && stream.Session().IsClosed()
}

// sever closes a side for good, whoever still reads or writes.
func sever(side io.ReadWriteCloser) {
	_ = side.Close()
	if stream, ok := side.(*yamux.Stream); ok {
		_ = stream.SetDeadline(time.Unix(1, 0)) // its Close ends one direction only
	}
}

// carry copies until the end, and passes that on. After a failure both sides are closed.
func carry(to, from io.ReadWriteCloser) int64 {
	buffer := buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool has nothing else
	defer buffers.Put(buffer)
	// Without the methods that would get a buffer of their own.
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

// commonName is who a connection's certificate was made for.
func commonName(conn *tls.Conn) string {
	if certificates := conn.ConnectionState().PeerCertificates; len(certificates) > 0 {
		return certificates[0].Subject.CommonName
	}
	return ""
}
