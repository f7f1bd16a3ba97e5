package secrets

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// Option says how a credential is made, replaced and kept.
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

// SignedBy names the authority of a certificate.
func SignedBy(ca string) Option {
	return func(o *options) { o.signedBy = ca }
}

// SignedByClass names the authority of a certificate, and which one while it is rotated. Without this, servers stay with the
// old one and clients get the current one.
func SignedByClass(ca string, class Class) Option {
	return func(o *options) { o.signedBy, o.signer = ca, class }
}

// Persist marks the secret as one that moves with a control plane to another seed.
func Persist() Option {
	return func(o *options) { o.persist = true }
}

// KeepOld keeps the replaced secret while the credential is rotated, and puts both into the bundle.
func KeepOld() Option {
	return func(o *options) { o.keepOld = true }
}

// IgnoreOldSecrets forgets the replaced secret: the rotation is being completed.
func IgnoreOldSecrets() Option {
	return func(o *options) { o.ignoreOld = true }
}

// IgnoreOldSecretsAfter forgets the replaced secret when its successor has been there for a while.
func IgnoreOldSecretsAfter(age time.Duration) Option {
	return func(o *options) { o.ignoreOldAfter = age }
}

// RenewAfter replaces a certificate when it has used up a share of its life, in percent. The default is 80, and ten days
// before the end at the latest.
func RenewAfter(percent int) Option {
	return func(o *options) { o.renewAfter = percent }
}

// RenewAuthority replaces an authority before it expires, too. It is for those that no rotation is ordered for, such as the
// authority of a seed; use it with KeepOld.
func RenewAuthority() Option {
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
