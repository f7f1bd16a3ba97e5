// Package dnsserver answers DNS queries for record sets that are kept in memory.
package dnsserver

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// defaultTTL is the TTL in seconds of record sets that set none.
	defaultTTL = 120
	// maxTXT is the length of a string in a TXT record. Longer texts are several strings.
	maxTXT = 255
	// maxAliases is how many aliases are followed in one answer.
	maxAliases = 8
)

// Zones are record sets by their owners. They may be used by several goroutines.
type Zones struct {
	domains []string // fully qualified, in lower case

	mutex sync.RWMutex
	// sets are the record sets by owner.
	sets map[string]set
	// names are the owners of the records of a name.
	names map[string]map[string]bool
	// within counts the sets at or below a name. A name with others below it exists, even without records.
	within map[string]int
}

// set is the record set of one owner for a name. Its records have one type.
type set struct {
	name    string
	records []dns.RR
}

// New returns zones without records. The server only answers for names in their domains.
func New(domains []string) *Zones {
	z := &Zones{sets: map[string]set{}, names: map[string]map[string]bool{}, within: map[string]int{}}
	for _, domain := range domains {
		z.domains = append(z.domains, dns.CanonicalName(domain))
	}
	return z
}

// Zone returns the longest domain that a name belongs to, or "" if there is none.
func (z *Zones) Zone(name string) string {
	best := ""
	for _, domain := range z.domains {
		if dns.IsSubDomain(domain, dns.CanonicalName(name)) && len(domain) > len(best) {
			best = domain
		}
	}
	return best
}

// Set replaces the record set of an owner. A name has the records of all its owners. If the record set is invalid, nothing changes.
func (z *Zones) Set(caller string, spec *extensionsv1alpha1.DNSRecordSpec) field.ErrorList {
	records, errs := records(spec)
	if z.Zone(spec.Name) == "" {
		errs = append(errs, field.Invalid(field.NewPath("spec", "name"), spec.Name, "is in none of the zones "+strings.Join(z.domains, " ")))
	}
	if len(errs) > 0 {
		return errs
	}
	z.mutex.Lock()
	defer z.mutex.Unlock()
	z.remove(caller)
	name := dns.CanonicalName(spec.Name)
	z.sets[caller] = set{name, records}
	if z.names[name] == nil {
		z.names[name] = map[string]bool{}
	}
	z.names[name][caller] = true
	for _, ancestor := range ancestors(name) {
		z.within[ancestor]++
	}
	return nil
}

// Remove removes the record set of an owner, if there is one.
func (z *Zones) Remove(caller string) {
	z.mutex.Lock()
	defer z.mutex.Unlock()
	z.remove(caller)
}

func (z *Zones) remove(caller string) {
	old, ok := z.sets[caller]
	if !ok {
		return
	}
	delete(z.sets, caller)
	if delete(z.names[old.name], caller); len(z.names[old.name]) == 0 {
		delete(z.names, old.name)
	}
	for _, ancestor := range ancestors(old.name) {
		if z.within[ancestor]--; z.within[ancestor] == 0 {
			delete(z.within, ancestor)
		}
	}
}

// ancestors returns a name and all names above it.
func ancestors(name string) []string {
	var all []string
	for _, start := range dns.Split(name) {
		all = append(all, name[start:])
	}
	return all
}

// Lookup returns the records of a type that a name has, with the aliases that lead to them, and whether the name exists at all.
func (z *Zones) Lookup(name string, typ uint16) ([]dns.RR, bool) {
	z.mutex.RLock()
	defer z.mutex.RUnlock()
	var answer []dns.RR
	owner := dns.CanonicalName(name)
	for range maxAliases {
		found, exists := z.at(owner)
		if !exists {
			return answer, len(answer) > 0
		}
		alias := ""
		for _, record := range found {
			cname, isAlias := record.(*dns.CNAME)
			if record.Header().Rrtype != typ && !isAlias {
				continue
			}
			record = dns.Copy(record)
			record.Header().Name = owner // for a wildcard, the name in the query
			if !slices.ContainsFunc(answer, func(r dns.RR) bool { return dns.IsDuplicate(r, record) }) {
				answer = append(answer, record)
			}
			if isAlias && typ != dns.TypeCNAME {
				alias = dns.CanonicalName(cname.Target)
			}
		}
		if alias == "" {
			return answer, true
		}
		owner = alias
	}
	return answer, true
}

// at returns the records of a name, or of the wildcard that covers it, and whether the name exists.
func (z *Zones) at(name string) ([]dns.RR, bool) {
	if z.within[name] > 0 {
		return z.recordsOf(name), true
	}
	above := ancestors(name)
	for i := 1; i < len(above); i++ {
		if wildcard := "*." + above[i]; len(z.names[wildcard]) > 0 {
			return z.recordsOf(wildcard), true
		}
		if z.within[above[i]] > 0 { // A wildcard further up does not reach below a name that exists.
			return nil, false
		}
	}
	return nil, false
}

func (z *Zones) recordsOf(name string) []dns.RR {
	var all []dns.RR
	for caller := range z.names[name] {
		all = append(all, z.sets[caller].records...)
	}
	slices.SortFunc(all, func(a, b dns.RR) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// records returns the records of a DNSRecord.
func records(spec *extensionsv1alpha1.DNSRecordSpec) ([]dns.RR, field.ErrorList) {
	var errs field.ErrorList
	if _, ok := dns.IsDomainName(spec.Name); !ok || spec.Name == "" {
		errs = append(errs, field.Invalid(field.NewPath("spec", "name"), spec.Name, "is no domain name"))
	}
	values := field.NewPath("spec", "values")
	if len(spec.Values) == 0 {
		errs = append(errs, field.Required(values, "at least one value"))
	}
	if spec.RecordType == extensionsv1alpha1.DNSRecordTypeCNAME && len(spec.Values) > 1 {
		errs = append(errs, field.TooMany(values, len(spec.Values), 1))
	}
	ttl := uint32(defaultTTL)
	switch {
	case spec.TTL == nil:
	case *spec.TTL < 0 || *spec.TTL > 1<<31-1:
		errs = append(errs, field.Invalid(field.NewPath("spec", "ttl"), *spec.TTL, "must be a number of seconds that DNS knows"))
	default:
		ttl = uint32(*spec.TTL)
	}
	header := dns.RR_Header{Name: dns.CanonicalName(spec.Name), Class: dns.ClassINET, Ttl: ttl}
	var all []dns.RR
	for i, value := range spec.Values {
		record, reason := record(spec.RecordType, header, value)
		if reason != "" {
			errs = append(errs, field.Invalid(values.Index(i), value, reason))
			continue
		}
		all = append(all, record)
	}
	return all, errs
}

func record(typ extensionsv1alpha1.DNSRecordType, header dns.RR_Header, value string) (record dns.RR, reason string) {
	switch typ {
	case extensionsv1alpha1.DNSRecordTypeA:
		if addr, err := netip.ParseAddr(value); err == nil && addr.Is4() {
			header.Rrtype = dns.TypeA
			return &dns.A{Hdr: header, A: addr.AsSlice()}, ""
		}
		return nil, "must be an IPv4 address"
	case extensionsv1alpha1.DNSRecordTypeAAAA:
		if addr, err := netip.ParseAddr(value); err == nil && addr.Is6() && addr.Zone() == "" {
			header.Rrtype = dns.TypeAAAA
			return &dns.AAAA{Hdr: header, AAAA: addr.AsSlice()}, ""
		}
		return nil, "must be an IPv6 address"
	case extensionsv1alpha1.DNSRecordTypeCNAME:
		if _, ok := dns.IsDomainName(value); ok && value != "" {
			header.Rrtype = dns.TypeCNAME
			return &dns.CNAME{Hdr: header, Target: dns.CanonicalName(value)}, ""
		}
		return nil, "must be a domain name"
	case extensionsv1alpha1.DNSRecordTypeTXT:
		header.Rrtype = dns.TypeTXT
		txt := &dns.TXT{Hdr: header}
		for text := value; ; text = text[maxTXT:] {
			if len(text) <= maxTXT {
				txt.Txt = append(txt.Txt, text)
				return txt, ""
			}
			txt.Txt = append(txt.Txt, text[:maxTXT])
		}
	}
	return nil, "the record type " + string(typ) + " is not supported"
}
