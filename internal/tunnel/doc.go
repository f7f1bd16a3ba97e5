// Package tunnel carries connections between the control plane of a shoot and its networks, in both directions, over connections that
// are dialed from the shoot.
//
// An agent (vpn-shoot) in the shoot, and a proxy (apiserver-proxy) on each of its nodes, dial the server (vpn-seed-server) beside the
// kube-apiserver through the gateway of the seed, by a server name of its own and with mutual TLS (tls.go). The common name of the client
// certificate determines its role. A connection carries many streams. The server opens streams to agents when the kube-apiserver requests a
// connection into the shoot with HTTP CONNECT, as its egress selector is configured; proxies open streams to the server when a pod connects to
// the address that the kube-apiserver advertises.
//
// A connection begins with a message from each side, and each stream with a request (message.go). For each stream, the connection with the
// fewest streams is selected, among the healthy ones: those whose last echo came back. If there are several servers, each client connects
// to all of them. A terminating process announces that (drain), and gets no more streams.
package tunnel
