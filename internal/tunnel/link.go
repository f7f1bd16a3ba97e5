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

// reconnectInterval keeps a server that ends connections at once from being flooded.
const reconnectInterval = 50 * time.Millisecond

// redial is how soon a lost connection is tried again: within a second, and not everybody at once.
func redial() wait.Backoff {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.7, Jitter: 0.5, Steps: 10, Cap: 600 * time.Millisecond}
}

// search is how soon another instance of the server is looked for when one has answered that is connected. The gateway soon leads to
// another one, unless there is none; then the proxies of thousands of nodes must not go on knocking at the one that has all the work.
// Agents are few, and without them a server that is back has no way to the shoot: it waits for one no longer than agentWait.
func (r Role) search() wait.Backoff {
	longest := 30 * time.Second
	if r == RoleAgent {
		longest = agentWait / 4
	}
	return wait.Backoff{Duration: 700 * time.Millisecond, Factor: 1.3, Jitter: 1, Steps: 20, Cap: longest}
}

// LinksValues are what connections to servers work with.
type LinksValues struct {
	// Address is where servers are reached, usually a gateway. TLS has the server name and the certificates.
	Address string
	TLS     *tls.Config
	// ID tells this instance from others.
	ID string
	// Role is what the instance is for its servers.
	Role Role
	// Metrics counts. Clock tells the time.
	Metrics *Metrics
	Clock   clock.WithTicker
}

// Links are the connections of an agent or a proxy, one to each instance of the server. They are made again when they break.
type Links struct {
	LinksValues
	servers *peers
	// handle serves streams that servers open. Nil refuses them.
	handle  func(context.Context, *yamux.Stream, request)
	streams busy
}

// NewLinks returns connections that are made by Run.
func NewLinks(v LinksValues) *Links { return &Links{LinksValues: v, servers: newPeers()} }

// Run keeps connections to all servers until the context ends.
func (l *Links) Run(ctx context.Context) {
	log := logf.FromContext(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	backoff, searching := redial(), l.Role.search()
	var lastError string
	for ctx.Err() == nil {
		replicas, fresh, err := l.link(ctx, &running)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if err.Error() != lastError {
				log.Info("Server is not reached, trying again", "address", l.Address, "reason", err.Error())
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
				if fresh {
					searching = l.Role.search()
					l.pause(ctx, wait.Jitter(reconnectInterval, 1), nil)
				} else if l.pause(ctx, searching.Step(), changed) { // chance has led us to a server that we have
					searching = l.Role.search() // it may have gone, and another one come
				}
				break
			}
			l.pause(ctx, forever, changed)
		}
	}
}

// forever is a pause that no time ends.
const forever time.Duration = -1

// pause waits for a time, or for a channel if there is one, or for the end. It returns whether it was the channel.
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

// link makes a connection. It returns how many servers there are, and whether this is one that was not connected.
func (l *Links) link(ctx context.Context, running *sync.WaitGroup) (int, bool, error) {
	dialing, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: l.TLS}).DialContext(dialing, "tcp", l.Address)
	if err != nil {
		return 0, false, err
	}
	theirs, err := sayHello(conn, hello{ID: l.ID})
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
	p, err := newPeer(conn, theirs.ID, true)
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
				_ = writeMessage(stream, reply{Code: replyForbidden, Message: "nothing can be asked of a " + string(l.Role)})
				return
			}
			l.streams.begin()
			defer l.streams.end()
			l.handle(ctx, stream, req)
		})
		l.servers.remove(p)
		l.Metrics.connections.WithLabelValues(string(l.Role)).Dec()
		log.Info("Connection is over")
	})
	return max(theirs.Replicas, 1), true, nil
}

// Healthy returns nil if bytes have lately gone to a server and back.
func (l *Links) Healthy() error {
	if usable, _ := l.servers.usable(); len(usable) == 0 {
		return errNobody
	}
	return nil
}

// Drain tells servers to open no more streams, gives them time to find another agent, and waits until the old streams have ended or the
// context is done.
func (l *Links) Drain(ctx context.Context) {
	if l.handle != nil { // or they open none
		l.servers.drain(ctx)
	}
	l.streams.wait(ctx)
}

// Forward accepts connections and carries each to the kube-apiserver, until the listener is closed.
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
	connecting, cancel := context.WithTimeoutCause(ctx, connectTimeout, errors.New("nobody answered in time"))
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
