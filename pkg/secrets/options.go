package secrets

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Option says how a credential is signed, replaced and kept.
type Option func(*options)

type options struct {
	signedBy       string
	signer         Class
	persist        bool
	keepOld        bool
	ignoreOld      bool
	ignoreOldAfter time.Duration
	renewAfter     int
	renewCA        bool
}

// SignedBy names the CA of a certificate.
func SignedBy(ca string) Option {
	return func(o *options) { o.signedBy = ca }
}

// SignedByClass names the CA of a certificate, and whether the current or the old one signs during a rotation. With SignedBy, it is
// the old one for servers and the current one for clients.
func SignedByClass(ca string, class Class) Option {
	return func(o *options) { o.signedBy, o.signer = ca, class }
}

// Persist sets LabelKeyPersist: the secret is restored when the control plane moves to another seed.
func Persist() Option {
	return func(o *options) { o.persist = true }
}

// KeepOld keeps the replaced secret during a rotation, and puts both into the bundle.
func KeepOld() Option {
	return func(o *options) { o.keepOld = true }
}

// IgnoreOldSecrets completes a rotation: the replaced secret is no longer in the bundle, and Cleanup deletes it.
func IgnoreOldSecrets() Option {
	return func(o *options) { o.ignoreOld = true }
}

// IgnoreOldSecretsAfter is IgnoreOldSecrets from a certain age of the new secret on.
func IgnoreOldSecretsAfter(age time.Duration) Option {
	return func(o *options) { o.ignoreOldAfter = age }
}

// RenewAfter renews a certificate after a percentage of its validity, and ten days before it expires at the latest. The default
// is 80.
func RenewAfter(percent int) Option {
	return func(o *options) { o.renewAfter = percent }
}

// RenewCA renews a CA before it expires, too. It is for CAs whose rotation is not initiated by an owner, such as that of a seed; use it
// with KeepOld.
func RenewCA() Option {
	return func(o *options) { o.renewCA = true }
}

// validUntil returns when the certificate in the data of a secret expires, if there is one.
func validUntil(data map[string][]byte) (time.Time, bool) {
	raw := data[DataKeyCertificate]
	if raw == nil {
		raw = data[DataKeyCertificateCA]
	}
	if config, err := clientcmd.Load(data[DataKeyKubeconfig]); err == nil && data[DataKeyKubeconfig] != nil {
		for _, user := range config.AuthInfos {
			raw = user.ClientCertificateData
		}
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return time.Time{}, false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return cert.NotAfter, true
}
