package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// reconnectInterval limits the rate of connections to a server that closes them at once.
const reconnectInterval = 50 * time.Millisecond

// redial is the backoff after a failed connection: less than a second, with jitter.
func redial() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.7, Jitter: 0.5, Steps: 10, Cap: 600 * time.Millisecond}
}

// search is the backoff after a connection led to an instance of the server that is connected already. The gateway will lead to another
// instance, unless there is none; then the proxies of thousands of nodes must not keep connecting to the only one. Agents are
// few, and a restarted server needs one soon: its clients wait for agentWait.
func (r Role) search() wait.Backoff {
	longest := 30 * time.Second
	if r == RoleAgent {
		longest = agentWait / 4
	}
	return wait.Backoff{Duration: 700 * time.Millisecond, Factor: 1.3, Jitter: 1, Steps: 20, Cap: longest}
}

// LinksValues are what Links need.
type LinksValues struct {
	// Address is the address of the servers, usually of a gateway, with a port. TLS has the server name and the credentials.
	Address string
	TLS     *tls.Config
	// ID identifies this instance.
	ID string
	// Role is that of this instance: agent or apiserver-proxy.
	Role Role
	// Metrics are updated, and Clock is used for intervals and durations. Both are required.
	Metrics *Metrics
	Clock   clock.WithTicker
}

// Links are the connections of an agent or a proxy, one to each instance of the server. Broken connections are dialed again.
type Links struct {
	LinksValues
	servers *peers
	// handle serves streams that servers open. With nil they are refused.
	handle  func(context.Context, *yamux.Stream, request)
	streams busy
}

// NewLinks returns Links, which Run connects.
func NewLinks(v LinksValues) *Links { return &Links{LinksValues: v, servers: newPeers()} }

// Run keeps connections to all servers until the context ends.
func (l *Links) Run(ctx context.Context) {
	log := logf.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	backoff, searching := redial(), l.Role.search()
	var lastError string
	for ctx.Err() == nil {
		replicas, isNew, err := l.link(ctx, &running)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if err.Error() != lastError {
				log.Info("Connecting to the server failed, retrying", "address", l.Address, "reason", err.Error())
			}
			lastError = err.Error()
			l.pause(ctx, backoff.Step(), nil)
			continue
		}
		backoff, lastError = redial(), ""
		for ctx.Err() == nil {
			all, changed := l.servers.list()
			live := 0
			for _, p := range all {
				if !p.drained.Load() && !p.session.IsClosed() {
					live++
				}
			}
			if live < replicas {
				if isNew {
					searching = l.Role.search()
					l.pause(ctx, wait.Jitter(reconnectInterval, 1), nil)
				} else if l.pause(ctx, searching.Step(), changed) { // the gateway led to a connected server
					searching = l.Role.search() // an instance may have been replaced
				}
				break
			}
			l.pause(ctx, forever, changed)
		}
	}
}

// forever is a pause without a timer.
const forever time.Duration = -1

// pause waits for a time, for a channel unless it is nil, or for the end of the context. It returns whether the channel was closed.
func (l *Links) pause(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	var timer <-chan time.Time
	if d != forever {
		timer = l.Clock.After(d)
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-changed:
		return true
	}
	return false
}

// link dials a connection. It returns the number of servers, and whether this one was not connected before.
func (l *Links) link(ctx context.Context, running *sync.WaitGroup) (int, bool, error) {
	dialing, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: l.TLS}).DialContext(dialing, "tcp", l.Address)
	if err != nil {
		return 0, false, err
	}
	theirs, err := exchangeHellos(conn, hello{ID: l.ID})
	if err != nil {
		_ = conn.Close()
		return 0, false, err
	}
	all, _ := l.servers.list()
	for _, p := range all {
		if p.id == theirs.ID {
			_ = conn.Close()
			return max(theirs.Replicas, 1), false, nil
		}
	}
	p, err := newPeer(conn, theirs.ID, true, streamWindow, streamLimits{opened: unlimited})
	if err != nil {
		_ = conn.Close()
		return 0, false, err
	}
	log := logf.FromContext(ctx).WithValues("server", p.id)
	log.Info("Connected")
	l.servers.add(p)
	l.Metrics.connections.WithLabelValues(string(l.Role)).Inc()
	running.Go(func() {
		defer conn.Close() //nolint:errcheck // it is over
		p.serve(ctx, l.Clock, l.servers, l.Metrics.echo(l.Role), func(ctx context.Context, stream *yamux.Stream, req request) {
			if l.handle == nil {
				_ = writeMessage(stream, reply{Code: replyForbidden, Message: "an " + string(l.Role) + " does not serve requests"})
				return
			}
			l.streams.begin()
			defer l.streams.end()
			l.handle(ctx, stream, req)
		})
		l.servers.remove(p)
		l.Metrics.connections.WithLabelValues(string(l.Role)).Dec()
		log.Info("Connection closed")
	})
	return max(theirs.Replicas, 1), true, nil
}

// Healthy returns nil if an echo of a server came back lately.
func (l *Links) Healthy() error {
	if usable, _ := l.servers.usable(); len(usable) == 0 {
		return errDisconnected
	}
	return nil
}

// Drain requests that servers open no more streams, waits until they have another agent or replacementTimeout is over, and then until
// the streams have ended or the context is done.
func (l *Links) Drain(ctx context.Context) {
	if l.handle != nil { // otherwise they open none
		l.servers.drain(ctx)
	}
	l.streams.wait(ctx)
}

// Forward accepts connections and forwards each to the kube-apiserver, until the listener is closed.
func (l *Links) Forward(ctx context.Context, listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		} else if err != nil {
			return fmt.Errorf("accept connection: %w", err)
		}
		l.streams.begin()
		go func() {
			defer l.streams.end()
			l.forward(ctx, conn)
		}()
	}
}

func (l *Links) forward(ctx context.Context, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // it is over
	began := l.Clock.Now()
	connecting, cancel := context.WithTimeoutCause(ctx, connectTimeout, errors.New("timed out"))
	stream, err := l.servers.connect(connecting, request{Type: requestAPIServer})
	cancel()
	l.Metrics.dialed(requestAPIServer, err, l.Clock.Since(began))
	if err != nil {
		logf.FromContext(ctx).Info("Connection to the kube-apiserver failed", "reason", err.Error())
		return
	}
	there, back := pipe(conn.(*net.TCPConn), stream) //nolint:forcetypeassert // only TCP is accepted
	l.Metrics.carried(there, back)
}
