package hosts

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/destination"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// dnsType is the type of the DNSRecords that name servers with dynamic updates have.
const dnsType = "rfc2136"

// Keys of the Secret of a DNSRecord.
const (
	dnsServerKey, dnsZoneKey                            = "Server", "Zone"
	tsigNameKey, tsigSecretKey, tsigAlgorithmKey        = "TSIGKeyName", "TSIGSecret", "TSIGSecretAlgorithm"
	defaultTTL                                   uint32 = 120
	// dnsTimeout limits the connection, and each message.
	dnsTimeout = 10 * time.Second
	// tsigFudge is how many seconds clocks may differ.
	tsigFudge = 300
	// longestText is the length of a string of a TXT record; a longer value is several of them.
	longestText = 255
)

// dnsRecords writes DNSRecords by dynamic updates (RFC 2136), signed with TSIG. A record stays when its control plane moves: that of the other seed is the
// same one.
type dnsRecords struct {
	client client.Client
	// blocked returns a function that returns why a name server, which the Secret of a tenant names, must not have an address, given the networks of the seed.
	blocked func(networks ...string) func(address string) string
}

// Reconcile replaces the records of a name and type.
func (a *dnsRecords) Reconcile(ctx context.Context, record *extensionsv1alpha1.DNSRecord, cluster *extension.Cluster) error {
	server, err := a.server(ctx, record, cluster)
	if err != nil {
		return err
	}
	records, err := recordsOf(&record.Spec)
	if err != nil {
		return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	if err := server.update(ctx, &record.Spec, records); err != nil {
		return err
	}
	record.Status.Zone = new(strings.TrimSuffix(server.zone, "."))
	return nil
}

// Delete removes them.
func (a *dnsRecords) Delete(ctx context.Context, record *extensionsv1alpha1.DNSRecord, cluster *extension.Cluster) error {
	server, err := a.server(ctx, record, cluster)
	if err != nil {
		return err
	}
	return server.update(ctx, &record.Spec, nil)
}

// nameServer is the primary name server of a zone, and the key for it.
type nameServer struct {
	address, zone, key, algorithm, secret string
	blocked                               func(address string) string
}

// dnsName is what names of zones and keys consist of.
var dnsName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// networksOf are those of the seed of a record with what no tenant may reach. A name server of the operator may be in the network of the nodes. A record of the
// seed itself, or of a garden, has no Cluster, and its Secret is the operator's.
func networksOf(cluster *extension.Cluster) []string {
	if cluster == nil || cluster.Seed == nil {
		return nil
	}
	networks := cluster.Seed.Spec.Networks
	return append([]string{networks.Pods, networks.Services}, networks.BlockCIDRs...)
}

// server reads the Secret of a record.
func (a *dnsRecords) server(ctx context.Context, record *extensionsv1alpha1.DNSRecord, cluster *extension.Cluster) (*nameServer, error) {
	secret, ref := &corev1.Secret{}, record.Spec.SecretRef
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", ref.Name, err)
	}
	value := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	s := &nameServer{
		address: value(dnsServerKey), zone: dns.CanonicalName(ptr.Deref(record.Spec.Zone, value(dnsZoneKey))), key: dns.CanonicalName(value(tsigNameKey)),
		algorithm: dns.HmacSHA256, secret: value(tsigSecretKey), blocked: a.blocked(networksOf(cluster)...),
	}
	if algorithm := value(tsigAlgorithmKey); algorithm != "" {
		s.algorithm = dns.CanonicalName(algorithm)
	}
	var errs []error
	for _, key := range []string{dnsServerKey, tsigNameKey, tsigSecretKey} {
		if value(key) == "" {
			errs = append(errs, fmt.Errorf("Secret %q: key %s: is required", ref.Name, key))
		}
	}
	for _, name := range [][2]string{{dnsZoneKey, s.zone}, {tsigNameKey, s.key}} {
		if !dnsName.MatchString(name[1]) {
			errs = append(errs, fmt.Errorf("Secret %q: key %s: must consist of letters, digits, '.', '_' and '-'", ref.Name, name[0]))
		}
	}
	if _, err := base64.StdEncoding.DecodeString(s.secret); err != nil {
		errs = append(errs, fmt.Errorf("Secret %q: key %s: must be base64", ref.Name, tsigSecretKey))
	}
	if !dns.IsSubDomain(s.zone, dns.CanonicalName(record.Spec.Name)) || s.zone == "." {
		errs = append(errs, field.Invalid(field.NewPath("spec", "name"), record.Spec.Name, fmt.Sprintf("must be in the zone %q", s.zone)))
	}
	if _, _, err := net.SplitHostPort(s.address); err != nil {
		s.address = net.JoinHostPort(strings.Trim(s.address, "[]"), "53")
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	return s, nil
}

// update replaces the records of a name and type, all at once.
func (s *nameServer) update(ctx context.Context, spec *extensionsv1alpha1.DNSRecordSpec, records []dns.RR) error {
	name, typ := dns.CanonicalName(spec.Name), dns.StringToType[string(spec.RecordType)]
	message := new(dns.Msg).SetUpdate(s.zone)
	message.RemoveRRset([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: name, Rrtype: typ}}})
	message.Insert(records)
	message.SetTsig(s.key, s.algorithm, tsigFudge, time.Now().Unix())
	dialer := destination.Dialer(s.blocked) // it sees the address that is really used, to which a name was resolved
	dialer.Timeout = dnsTimeout
	exchange := &dns.Client{Net: "tcp", Timeout: dnsTimeout, TsigSecret: map[string]string{s.key: s.secret}, Dialer: dialer}
	response, _, err := exchange.ExchangeContext(ctx, message, s.address)
	code := dns.RcodeSuccess
	if response != nil {
		code = response.Rcode
	}
	switch {
	case code == dns.RcodeNotAuth, code == dns.RcodeRefused:
		return errorcode.With(fmt.Errorf("update zone %s: the name server refuses it (%s): check the TSIG key, and whether it is the primary of the zone",
			s.zone, dns.RcodeToString[code]), corev1beta1.ErrorInfraUnauthorized)
	case code == dns.RcodeNotZone:
		return errorcode.With(fmt.Errorf("update zone %s: the name %s is not in it", s.zone, name), corev1beta1.ErrorConfigurationProblem)
	case code != dns.RcodeSuccess:
		return fmt.Errorf("update zone %s: the name server returns %s", s.zone, dns.RcodeToString[code])
	case errors.Is(err, dns.ErrKeyAlg):
		return errorcode.With(fmt.Errorf("update zone %s: key %s: the algorithm is not known", s.zone, tsigAlgorithmKey), corev1beta1.ErrorConfigurationProblem)
	case err != nil:
		// The owner of the Secret must not learn what there is in the network of the seed.
		logf.FromContext(ctx).Error(err, "Cannot update zone", "zone", s.zone, "server", s.address)
		return fmt.Errorf("update zone %s: the name server does not answer", s.zone)
	}
	return nil
}

// recordsOf returns the records of a name.
func recordsOf(spec *extensionsv1alpha1.DNSRecordSpec) ([]dns.RR, error) {
	ttl := defaultTTL
	if spec.TTL != nil {
		ttl = uint32(*spec.TTL)
	}
	var records []dns.RR
	var errs []error
	for i, value := range spec.Values {
		header := dns.RR_Header{Name: dns.CanonicalName(spec.Name), Rrtype: dns.StringToType[string(spec.RecordType)], Class: dns.ClassINET, Ttl: ttl}
		at := field.NewPath("spec", "values").Index(i)
		address, err := netip.ParseAddr(value)
		switch {
		case spec.RecordType == extensionsv1alpha1.DNSRecordTypeA && err == nil && address.Is4():
			records = append(records, &dns.A{Hdr: header, A: address.AsSlice()})
		case spec.RecordType == extensionsv1alpha1.DNSRecordTypeAAAA && err == nil && address.Is6():
			records = append(records, &dns.AAAA{Hdr: header, AAAA: address.AsSlice()})
		case spec.RecordType == extensionsv1alpha1.DNSRecordTypeCNAME && i == 0:
			records = append(records, &dns.CNAME{Hdr: header, Target: dns.CanonicalName(value)})
		case spec.RecordType == extensionsv1alpha1.DNSRecordTypeTXT:
			records = append(records, &dns.TXT{Hdr: header, Txt: texts(value)})
		default:
			errs = append(errs, field.Invalid(at, value, fmt.Sprintf("is not a value of a record of type %s", spec.RecordType)))
		}
	}
	return records, errors.Join(errs...)
}

// texts splits the value of a TXT record. The library takes backslashes and quotes as escapes.
func texts(value string) []string {
	var all []string
	for len(value) > longestText {
		all, value = append(all, value[:longestText]), value[longestText:]
	}
	all = append(all, value)
	for i := range all {
		all[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(all[i])
	}
	return all
}
