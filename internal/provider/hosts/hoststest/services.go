package hoststest

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TSIG is the secret of the key "test." of name servers.
var TSIG = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// Address is an address of this computer that others reach. A test that needs one is skipped if there is none.
func Address(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range all {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	t.Skip("this computer has no network")
	return ""
}

// NameServer is a name server of this process at an address of this computer. It knows what RFC 2136 has for replacing a set of records.
func NameServer(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var records []dns.RR
	is := func(a, b dns.RR_Header) bool { return a.Name == b.Name && a.Rrtype == b.Rrtype }
	server := &dns.Server{
		Listener: listener, TsigSecret: map[string]string{"test.": TSIG},
		MsgAcceptFunc: func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, request *dns.Msg) {
			mutex.Lock()
			defer mutex.Unlock()
			response := new(dns.Msg).SetReply(request)
			switch {
			case request.Opcode == dns.OpcodeQuery:
				for _, record := range records {
					if is(*record.Header(), dns.RR_Header{Name: request.Question[0].Name, Rrtype: request.Question[0].Qtype}) {
						response.Answer = append(response.Answer, record)
					}
				}
			case request.IsTsig() == nil || w.TsigStatus() != nil:
				response.Rcode = dns.RcodeNotAuth
			default:
				for _, change := range request.Ns {
					if change.Header().Class == dns.ClassANY {
						records = slices.DeleteFunc(records, func(record dns.RR) bool { return is(*record.Header(), *change.Header()) })
					} else {
						records = append(records, change)
					}
				}
				response.SetTsig("test.", dns.HmacSHA256, 300, int64(request.IsTsig().TimeSigned))
			}
			_ = w.WriteMsg(response)
		}),
	}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return listener.Addr().String()
}

// Store has the part of the API of S3 that buckets need.
type Store struct {
	mutex sync.Mutex
	// Objects are those of each bucket.
	Objects map[string][]string
}

// ServeHTTP implements http.Handler.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fail := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	objects, ok := s.Objects[bucket]
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential=id/"):
		fail(http.StatusForbidden, "InvalidAccessKeyId")
	case r.Method == http.MethodPut:
		s.Objects[bucket] = nil
	case !ok:
		fail(http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodGet:
		type object struct {
			Key          string
			LastModified time.Time
		}
		list := struct {
			XMLName  xml.Name `xml:"ListBucketResult"`
			Contents []object
		}{}
		for _, name := range objects {
			if strings.HasPrefix(name, r.URL.Query().Get("prefix")) {
				list.Contents = append(list.Contents, object{Key: name})
			}
		}
		_ = xml.NewEncoder(w).Encode(list)
	case r.Method == http.MethodDelete && key != "":
		s.Objects[bucket] = slices.DeleteFunc(slices.Clone(objects), func(name string) bool { return name == key })
	case r.Method == http.MethodDelete && len(objects) > 0:
		fail(http.StatusConflict, "BucketNotEmpty")
	case r.Method == http.MethodDelete:
		delete(s.Objects, bucket)
	}
}
