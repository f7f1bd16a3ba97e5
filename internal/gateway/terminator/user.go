package terminator

import (
	"crypto/x509"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// remotePrefix is that of the headers by which a proxy names users, in lower case.
const remotePrefix = "x-remote-"

// bearerProtocol is how WebSocket clients in browsers send tokens.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// userOf reads the user from the client certificate of a request, with the code of kube-apiserver. The certificate is verified for each request
// and not for each connection, so that one that expires, or the CA of which is removed, is refused on open connections, too.
func userOf(clientCAs *x509.CertPool) authenticator.Request {
	options := x509request.DefaultVerifyOptions()
	options.Roots = clientCAs
	return x509request.New(options, x509request.CommonNameUserConversion)
}

// presentsCertificate is whether the client has sent a certificate, valid or not.
func presentsCertificate(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// presentsToken is whether the request has other credentials than a certificate.
func presentsToken(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" ||
		slices.ContainsFunc(r.Header.Values("Sec-Websocket-Protocol"), func(v string) bool { return strings.Contains(v, bearerProtocol) })
}

// removeRemote removes all headers by which a client could name a user. Only the gateway may do so.
func removeRemote(header http.Header) {
	for name := range header {
		if strings.HasPrefix(strings.ToLower(name), remotePrefix) {
			delete(header, name)
		}
	}
}

// transferable is whether a user arrives at the kube-apiserver as it is. Spaces at the ends of a value of a header are lost, which would make
// another user of it.
func transferable(u user.Info) bool {
	changed := func(value string) bool {
		return value == "" || strings.TrimSpace(value) != value || !httpguts.ValidHeaderFieldValue(value)
	}
	return !changed(u.GetName()) && !slices.ContainsFunc(u.GetGroups(), changed)
}
