// Package host makes and removes what a landscape needs of the machine it runs on: a network, kernel settings, and a way
// to find and end every process, mount and control group that belongs to it.
package host
