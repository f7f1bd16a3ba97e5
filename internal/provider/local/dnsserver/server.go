package dnsserver

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/miekg/dns"
)

const (
	// denialTTL is the TTL in seconds of negative answers. Clients often query a name shortly before it exists.
	denialTTL = 1
	// stopTimeout is how long queries may take after the context has ended.
	stopTimeout = 2 * time.Second
)

// Server answers queries over UDP and TCP.
type Server struct {
	zones    *Zones
	packets  net.PacketConn
	listener net.Listener
}

// Listen listens at an address for UDP and TCP, such as ":8053".
func Listen(ctx context.Context, address string, zones *Zones) (*Server, error) {
	config := net.ListenConfig{}
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for DNS over TCP: %w", err)
	}
	// The same port for both, if it was chosen by the system.
	packets, err := config.ListenPacket(ctx, "udp", listener.Addr().String())
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("listen for DNS over UDP: %w", err)
	}
	return &Server{zones, packets, listener}, nil
}

// Address is the address of the server.
func (s *Server) Address() string { return s.listener.Addr().String() }

// NeedLeaderElection returns false, as each replica answers queries.
func (s *Server) NeedLeaderElection() bool { return false }

// Start answers queries until the context ends.
func (s *Server) Start(ctx context.Context) error {
	failed := make(chan error, 2)
	servers := []*dns.Server{{PacketConn: s.packets, Handler: s}, {Listener: s.listener, Handler: s}}
	for _, server := range servers {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go func() { failed <- server.ActivateAndServe() }()
		select { // A server that has not started yet cannot be stopped.
		case <-started:
		case err := <-failed:
			return fmt.Errorf("serve DNS: %w", err)
		}
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, server := range servers {
		_ = server.ShutdownContext(stop) // queries that are left end with the process
	}
	if err != nil {
		return fmt.Errorf("serve DNS: %w", err)
	}
	return nil
}

// ServeDNS implements dns.Handler.
func (s *Server) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	response := s.answer(request)
	size := dns.MaxMsgSize
	if w.LocalAddr().Network() == "udp" {
		size = dns.MinMsgSize
		if options := request.IsEdns0(); options != nil {
			size = max(size, int(options.UDPSize()))
		}
	}
	response.Truncate(size)
	_ = w.WriteMsg(response) // the client retries if it gets no answer
}

func (s *Server) answer(request *dns.Msg) *dns.Msg {
	response := new(dns.Msg)
	if request.Opcode != dns.OpcodeQuery || len(request.Question) != 1 {
		return response.SetRcode(request, dns.RcodeNotImplemented)
	}
	question := request.Question[0]
	zone := s.zones.Zone(question.Name)
	if zone == "" || question.Qclass != dns.ClassINET {
		return response.SetRcode(request, dns.RcodeRefused)
	}
	response.SetReply(request)
	response.Authoritative = true
	if options := request.IsEdns0(); options != nil {
		response.SetEdns0(options.UDPSize(), false)
	}
	soa := &dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: denialTTL},
		Ns:  "ns." + zone, Mbox: "hostmaster." + zone, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: denialTTL,
	}
	isZone := dns.CanonicalName(question.Name) == zone
	if isZone && question.Qtype == dns.TypeSOA {
		response.Answer = []dns.RR{soa}
		return response
	}
	records, exists := s.zones.Lookup(question.Name, question.Qtype)
	if response.Answer = records; len(records) == 0 {
		response.Ns = []dns.RR{soa}
		if !exists && !isZone {
			response.Rcode = dns.RcodeNameError
		}
	}
	return response
}
