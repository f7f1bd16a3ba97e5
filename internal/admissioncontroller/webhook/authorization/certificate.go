package authorization

import (
	"crypto/x509"
	"net/http"

	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
)

// RequireCertificate refuses requests without a client certificate that is valid at the time. The TLS server has to request one.
func RequireCertificate(next http.Handler, options func() (x509.VerifyOptions, bool)) http.Handler {
	authenticator := x509request.NewDynamic(options, x509request.CommonNameUserConversion)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok, err := authenticator.AuthenticateRequest(r); !ok || err != nil {
			http.Error(w, "a valid client certificate is required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
