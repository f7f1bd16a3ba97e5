// Package tunnel carries connections between the control plane of a shoot and its networks, in both directions, over connections that
// are dialed from the shoot.
//
// An agent (vpn-shoot) in the shoot, and a proxy (apiserver-proxy) on each of its nodes, dial the server (vpn-seed-server) beside the
// kube-apiserver through the gateway of the seed, by a server name of its own and with mutual TLS. The common name of the certificate
// decides which of both a client is. Over such a connection go many streams. The server opens streams to agents when it is asked for
// a connection into the shoot with HTTP CONNECT, which the kube-apiserver's egress selector does; proxies open streams to the server
// when a pod connects to the address that the kube-apiserver advertises.
//
// A connection begins with a message from each side, and so does each stream, see hello and request. Which connection a stream takes
// is chosen anew each time, among those over which bytes have lately gone to the other side and back. That is also what health means.
// Of several servers, each agent connects to all. An end that is to stop says so, and is given no more streams.
package tunnel
