// Package haproxy updates the routes of a running HAProxy for TLS connections, without reloading it.
//
// HAProxy looks a server name up in two maps, which are files at its start and are changed through its socket afterwards: first in the
// one for exact names, then in the one for suffixes, where the first match counts. A value is an address and a port with a slash in
// between; a third field, the Service that the address stands for, is for the limits only. Each change replaces a map in one step, so
// that no connection sees half of it.
package haproxy

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// File names in the directory that HAProxy shares with its controller.
const (
	// SocketFile is the socket for commands.
	SocketFile = "haproxy.sock"
	// ExactFile is the map with names.
	ExactFile = "exact.map"
	// SuffixFile is the map with suffixes.
	SuffixFile = "suffix.map"
)

// Nowhere is the value of a name whose connections are refused, even if a shorter suffix matches it.
const Nowhere = "-"

// Table has the backends of connections by their server name.
type Table struct {
	// Exact has backends by name, in lower case. The zero backend refuses connections.
	Exact map[string]Backend
	// Suffix has backends by what follows the star of a wildcard, such as ".example.com".
	Suffix map[string]Backend
}

// Backend is where connections go.
type Backend struct {
	// Service is the address of a Service.
	Service netip.AddrPort
	// Through is who connects to the Service instead of HAProxy. The zero value means HAProxy itself.
	Through netip.AddrPort
}

// value is the backend in a map. The Service is in it, too, as HAProxy counts connections by values.
func (b Backend) value() string {
	switch {
	case !b.Service.IsValid():
		return Nowhere
	case b.Through.IsValid():
		return value(b.Through) + "/" + b.Service.Addr().String()
	}
	return value(b.Service)
}

func value(to netip.AddrPort) string { return to.Addr().String() + "/" + strconv.Itoa(int(to.Port())) }

// NewTable returns an empty table.
func NewTable() Table {
	return Table{Exact: map[string]Backend{}, Suffix: map[string]Backend{}}
}

// Add adds a host name in lower case, which may be a wildcard such as "*.example.com".
func (t Table) Add(host string, to netip.AddrPort) { t.AddBackend(host, Backend{Service: to}) }

// AddBackend is Add for connections that may go through another process.
func (t Table) AddBackend(host string, to Backend) {
	if suffix, ok := strings.CutPrefix(host, "*"); ok {
		t.Suffix[suffix] = to
		return
	}
	t.Exact[host] = to
}

// entry is a line of a map.
type entry struct{ key, value string }

// exact returns the lines of the map with names, sorted.
func (t Table) exact() []entry { return entries(t.Exact, strings.Compare) }

// suffix returns the lines of the map with suffixes: the longest first, as the first match counts.
func (t Table) suffix() []entry {
	return entries(t.Suffix, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
}

func entries(m map[string]Backend, order func(a, b string) int) []entry {
	out := make([]entry, 0, len(m))
	for _, key := range slices.SortedFunc(maps.Keys(m), order) {
		out = append(out, entry{key, m[key].value()})
	}
	return out
}

// Equal says whether both tables are the same.
func (t Table) Equal(other Table) bool {
	return maps.Equal(t.Exact, other.Exact) && maps.Equal(t.Suffix, other.Suffix)
}
