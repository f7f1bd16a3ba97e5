package tunnel

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
)

// Limits are the maximum numbers of what clients can open on a server. All clients with a role have the same certificate, and its private key is
// readable for root on each node, so that the owner of a shoot can open as many as there may be. Zero means the default.
type Limits struct {
	// Handshakes is the number of connections that are not authenticated yet. When there are more, the oldest one is closed.
	Handshakes int
	// Agents and APIServerProxies are the numbers of connections of these roles.
	Agents, APIServerProxies int
	// Streams is the number of streams of all connections, in both directions.
	Streams int
	// StreamsPerConnection is the number of streams that one apiserver-proxy can open.
	StreamsPerConnection int
}

// DefaultLimits are enough for a shoot with 32 nodes.
func DefaultLimits() Limits {
	return Limits{Handshakes: 256, Agents: 16, APIServerProxies: 64, Streams: 2048, StreamsPerConnection: 1024}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, field := range []struct {
		value *int
		or    int
	}{
		{&l.Handshakes, d.Handshakes},
		{&l.Agents, d.Agents},
		{&l.APIServerProxies, d.APIServerProxies},
		{&l.Streams, d.Streams},
		{&l.StreamsPerConnection, d.StreamsPerConnection},
	} {
		if *field.value <= 0 {
			*field.value = field.or
		}
	}
	return l
}

// unlimited is the limit of what a client of the tunnel serves: its server is trusted.
const unlimited = math.MaxInt

// agentStreams is how many streams an agent can open: it sends one echo at a time, and announces that it terminates.
const agentStreams = 8

// The reasons in tunnel_refused_total.
const (
	refusedHandshake          = "handshakes"
	refusedConnection         = "connections"
	refusedStream             = "streams"
	refusedStreamOfConnection = "streams-per-connection"
	refusedUnclosed           = "unclosed-streams"
)

// errBusy says that a limit of the other side is reached.
var errBusy = errors.New("a limit of the tunnel is reached")

// limitError returns errBusy with what to do.
func limitError(what string, limit int, flag string) error {
	return fmt.Errorf("%w: there are %d %s; close some, or run the server with a higher --%s", errBusy, limit, what, flag)
}

// streamLimits are those of one connection.
type streamLimits struct {
	// opened is how many streams of the other side are served at a time.
	opened int
	// total is how many streams there can be in both directions, also those that this side has closed and the other has not. At more, the
	// connection is closed, as its other side does not close what it should. Zero means no limit.
	total int
	// refused records a refusal. It may be nil.
	refused func(reason string)
}

// handshakes are the connections that are not authenticated yet, the oldest first.
type handshakes struct {
	mu  sync.Mutex
	all []net.Conn
}

// add adds a connection, and closes the oldest one if there are more than a limit. A client that is fast gets in although others do not
// complete their handshakes. It returns whether one was closed.
func (h *handshakes) add(conn net.Conn, limit int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, conn)
	if len(h.all) <= limit {
		return false
	}
	_ = h.all[0].Close()
	h.all = slices.Delete(h.all, 0, 1)
	return true
}

func (h *handshakes) remove(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.all, conn); i >= 0 {
		h.all = slices.Delete(h.all, i, i+1)
	}
}

// counter counts up to limits.
type counter struct {
	mu sync.Mutex
	n  int
}

// take counts one more, and returns false if there are as many as the limit.
func (c *counter) take(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n >= limit {
		return false
	}
	c.n++
	return true
}

func (c *counter) give() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
}
