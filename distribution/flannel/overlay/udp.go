// Package udp stands for flannel's backend of that name, which is left out: it would be the only one to need C.
package udp
