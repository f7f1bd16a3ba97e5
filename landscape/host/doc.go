// Package host creates and removes what a landscape needs on the machine it runs on: a network and kernel settings. It finds and removes
// every process, mount and control group that belongs to a landscape.
package host
