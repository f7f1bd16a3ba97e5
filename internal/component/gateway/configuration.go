package gateway

import "fmt"

// Limits of what one client can take of a gateway that all shoots of a seed share. HAProxy reads them from environment variables.
const (
	// EnvConnections is the number of connections from one source, and to one Service, at a time. A source is an IPv4 address, or an IPv6
	// network of 64 bits. The nodes of a cluster may have a common address, and a load balancer may replace all of them by its own, so the pod
	// sets a large share of what its HAProxy can have, see share.
	EnvConnections = "GATEWAY_CONNECTIONS"
	// EnvRate is the number of new connections from one source, and to one Service, in ten seconds.
	EnvRate = "GATEWAY_RATE"

	connections, rate = 10000, 10000
)

// Configuration returns the configuration of HAProxy for a directory that it shares with its controller. It does not depend on
// routes, which are in maps that change at run time, so HAProxy is never reloaded. With proxyProtocol, connections may begin with a header of the
// PROXY protocol, which has the address of the client; those without one are accepted too.
//
// A connection is inspected until it has sent a server name, which may take several packets, and refused without one. Connections may
// be silent for long, as watches and tunnels are; TCP keepalive closes them if the other side is gone.
//
// Refusals are counted by haproxy_frontend_denied_connections_total (by source) and haproxy_frontend_requests_denied_total (without a known
// name, or by Service). The limit by Service is counted by the address, of which a
// Service has one, and only for known names, so that unknown ones do not fill the table.
//
// A connection attempt times out before the kernel repeats its first packet, after a second, and is retried with another socket. If
// the first packet of a socket were refused by ICMP, as kube-proxy does without endpoints, and the second one accepted, HAProxy 2.6 would
// have a connection that works, but polls it without pause.
func Configuration(dir string, port, health int, proxyProtocol bool) string {
	config := fmt.Sprintf(global, dir, drainSeconds)
	if proxyProtocol {
		// HAProxy either requires the header at a listener or does not know it. A second listener requires it; the first one sends to it what
		// begins with a header of version 1 or 2. No TLS connection begins so.
		config += fmt.Sprintf(frontend, "tls", fmt.Sprintf(listen, port), limits("connection"), proxied, routes(dir)+useProxied) +
			fmt.Sprintf(proxiedBackend, dir) +
			fmt.Sprintf(frontend, "proxied", fmt.Sprintf(listenProxied, dir), limits("session"), "", routes(dir))
	} else {
		config += fmt.Sprintf(frontend, "tls", fmt.Sprintf(listen, port), limits("connection"), "", routes(dir))
	}
	return config + fmt.Sprintf(services, health)
}

const global = `global
  log stdout format raw local0 warning
  stats socket %[1]s/haproxy.sock mode 660 level admin
  stats timeout 1d
  fd-hard-limit 100000
  nbthread 2
  hard-stop-after %[2]ds

defaults
  log global
  timeout connect 900ms
  retries 5
  timeout client 1m
  timeout server 1m
  timeout tunnel 1d
  timeout client-fin 30s
  timeout server-fin 30s

backend by-source
  stick-table type ipv6 size 100k expire 1m store conn_cur,conn_rate(10s)

backend by-service
  stick-table type string len 64 size 100k expire 1m store conn_cur,conn_rate(10s)
`

const frontend = `
frontend %s
  mode tcp
%s%s  tcp-request inspect-delay 10s
%s%s`

const listen = `  bind :::%d v4v6
  option clitcpka
  clitcpka-idle 30s
  clitcpka-intvl 10s
  clitcpka-cnt 3
`

const listenProxied = `  bind unix@%s/proxied.sock accept-proxy
`

// limits are the limits by source. Before the layer "session", the address in the header of the PROXY protocol is not known.
func limits(layer string) string {
	return fmt.Sprintf(`  tcp-request %[1]s track-sc0 src,ipmask(32,64) table by-source
  tcp-request %[1]s reject if { sc0_conn_cur(by-source) gt "${%[2]s-%[3]d}" }
  tcp-request %[1]s reject if { sc0_conn_rate(by-source) gt "${%[4]s-%[5]d}" }
`, layer, EnvConnections, connections, EnvRate, rate)
}

const proxied = `  acl proxied req.payload(0,6) -m str "PROXY "
  acl proxied req.payload(0,12) -m bin 0D0A0D0A000D0A515549540A
  tcp-request content accept if proxied
`

const useProxied = `  use_backend proxied if proxied
`

const proxiedBackend = `
backend proxied
  mode tcp
  server proxied unix@%s/proxied.sock
`

// routes are the rules that find the Service of a connection, and the limits by Service.
func routes(dir string) string {
	return fmt.Sprintf(`  tcp-request content reject unless { req.ssl_sni -m found }
  tcp-request content set-var(txn.to) req.ssl_sni,lower,map_str(%[1]s/exact.map)
  tcp-request content set-var(txn.to) req.ssl_sni,lower,map_end(%[1]s/suffix.map) unless { var(txn.to) -m found }
  tcp-request content reject unless { var(txn.to) -m sub / }
  tcp-request content track-sc1 var(txn.to) table by-service
  tcp-request content reject if { sc1_conn_cur(by-service) gt "${%[2]s-%[3]d}" }
  tcp-request content reject if { sc1_conn_rate(by-service) gt "${%[4]s-%[5]d}" }
  tcp-request content set-dst var(txn.to),field(1,/)
  tcp-request content set-dst-port var(txn.to),field(2,/)
  default_backend services
`, dir, EnvConnections, connections, EnvRate, rate)
}

const services = `
backend services
  mode tcp
  option srvtcpka
  srvtcpka-idle 30s
  srvtcpka-intvl 10s
  srvtcpka-cnt 3
  server service 0.0.0.0:0

frontend health
  mode http
  bind :::%d v4v6
  http-request return status 200 content-type text/plain string ok if { path /healthz }
  http-request use-service prometheus-exporter if { path /metrics }
  http-request return status 404
`
