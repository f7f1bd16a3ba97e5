package secrets

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Keys of the data of secrets. Other controllers and pods read them. Source: the constants that extensions rely on.
const (
	// DataKeyCertificateCA holds the certificate of a CA as PEM, in its own secret and in those of certificates that it signed.
	DataKeyCertificateCA = "ca.crt"
	// DataKeyPrivateKeyCA holds the private key of a CA as PEM.
	DataKeyPrivateKeyCA = "ca.key"
	// DataKeyCertificateBundle holds the CA bundle as PEM: during a rotation, the certificates of the new and the old CA.
	DataKeyCertificateBundle = "bundle.crt"
	// DataKeyPrivateKeyBundle holds the new and the old private key as PEM, to verify what either one signed.
	DataKeyPrivateKeyBundle = "bundle.key"
	// DataKeyCertificate holds a certificate as PEM.
	DataKeyCertificate = "tls.crt"
	// DataKeyPrivateKey holds the private key of a certificate as PEM.
	DataKeyPrivateKey = "tls.key"
	// DataKeyKubeconfig holds a kubeconfig.
	DataKeyKubeconfig = "kubeconfig"
	// DataKeyRSAPrivateKey holds a private key as PEM. The name is older than the other kinds of keys.
	DataKeyRSAPrivateKey = "id_rsa"
	// DataKeySSHAuthorizedKeys holds the public key as a line of authorized_keys.
	DataKeySSHAuthorizedKeys = "id_rsa.pub"
	// DataKeyStaticTokenCSV holds tokens in the format of the kube-apiserver's --token-auth-file.
	DataKeyStaticTokenCSV = "static_tokens.csv"
	// DataKeyUserName holds a user name.
	DataKeyUserName = "username"
	// DataKeyPassword holds a password.
	DataKeyPassword = "password"
	// DataKeyAuth holds user name and hashed password in the format of htpasswd.
	DataKeyAuth = "auth"
	// DataKeyEncryptionProvider holds the provider of an EncryptionConfiguration, such as "aescbc".
	DataKeyEncryptionProvider = "provider"
	// DataKeyEncryptionKeyName holds the name of the key in an EncryptionConfiguration.
	DataKeyEncryptionKeyName = "key"
	// DataKeyEncryptionSecret holds the key itself.
	DataKeyEncryptionSecret = "secret"
	// DataKeyEncryptionSecretEncoding says how the key is written: "none" if as it is.
	DataKeyEncryptionSecretEncoding = "encoding"
)

// Config describes a credential. Equal configs are the same credential.
type Config interface {
	// SecretName is the name of the credential, which the name of its secret starts with.
	SecretName() string
	generate(in inputs) (map[string][]byte, error)
}

// inputs are what a credential depends on besides its config.
type inputs struct {
	now time.Time
	ca  *signingCA // nil if nothing is to be signed
}

const (
	// defaultValidity is the validity of certificates: longer than most clusters live, as their owners decide when to rotate.
	defaultValidity = 10 * 365 * 24 * time.Hour
	// clockSkew is how far the clocks of machines may be behind the one of the process that signs.
	clockSkew = time.Minute
)

// CertificateAuthority is a key and a self-signed certificate that signs others.
type CertificateAuthority struct {
	// Name is the name of the credential, such as "ca". CommonName is that of the subject; the default is the name.
	Name, CommonName string
	// Validity is the validity of the certificate. The default is ten years.
	Validity time.Duration
}

// SecretName implements Config.
func (c *CertificateAuthority) SecretName() string { return c.Name }

func (c *CertificateAuthority) generate(in inputs) (map[string][]byte, error) {
	key, keyPEM, err := newECDSAKey()
	if err != nil {
		return nil, err
	}
	name := c.CommonName
	if name == "" {
		name = c.Name
	}
	template := newTemplate(pkix.Name{CommonName: name}, in.now, c.Validity)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{DataKeyCertificateCA: cert, DataKeyPrivateKeyCA: keyPEM}, nil
}

// Usage is the extended key usage of a certificate.
type Usage string

const (
	// ServerCert authenticates a server to its clients.
	ServerCert Usage = "server"
	// ClientCert authenticates a client to servers.
	ClientCert Usage = "client"
	// ServerClientCert does both, as members of an etcd cluster need it.
	ServerClientCert Usage = "both"
)

// Certificate is a key and a certificate that a CA signed.
type Certificate struct {
	// Name is the name of the credential. CommonName and Organization are those of the subject: for a client, user name and groups.
	Name, CommonName string
	Organization     []string
	// DNSNames and IPAddresses are the subject alternative names.
	DNSNames    []string
	IPAddresses []net.IP
	// Usage is the extended key usage.
	Usage Usage
	// Validity is the validity of the certificate, which ends with that of the CA at the latest. The default is ten years.
	Validity time.Duration
	// WithoutCA leaves the CA certificate out of the secret.
	WithoutCA bool
}

// SecretName implements Config.
func (c *Certificate) SecretName() string { return c.Name }

func (c *Certificate) generate(in inputs) (map[string][]byte, error) {
	if in.ca == nil {
		return nil, fmt.Errorf("certificate %q: the option SignedBy is missing", c.Name)
	}
	key, keyPEM, err := newECDSAKey()
	if err != nil {
		return nil, err
	}
	template := newTemplate(pkix.Name{CommonName: c.CommonName, Organization: c.Organization}, in.now, c.Validity)
	template.DNSNames, template.IPAddresses = c.DNSNames, c.IPAddresses
	if c.Usage != ClientCert {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if c.Usage != ServerCert {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if template.NotAfter.After(in.ca.cert.NotAfter) {
		template.NotAfter = in.ca.cert.NotAfter // it would not be trusted longer
	}
	cert, err := sign(template, in.ca.cert, key.Public(), in.ca.key)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{DataKeyCertificate: cert, DataKeyPrivateKey: keyPEM}
	if !c.WithoutCA {
		data[DataKeyCertificateCA] = in.ca.certPEM
	}
	return data, nil
}

// Kubeconfig is a kubeconfig with a client certificate or a token.
type Kubeconfig struct {
	// Name is the name of the credential.
	Name string
	// ContextName is the name of cluster, user and context in the kubeconfig. The default is the name.
	ContextName string
	// Server is the URL of the API server, and CA its CA bundle as PEM.
	Server string
	CA     []byte
	// TLSServerName is the name in the server's certificate, if that is not the host of the URL.
	TLSServerName string
	// Certificate describes the client certificate. It needs the option SignedBy.
	Certificate *Certificate
	// Token and TokenFile are used instead of a certificate.
	Token, TokenFile string
	// Namespace is the default namespace of the context.
	Namespace string
}

// SecretName implements Config.
func (k *Kubeconfig) SecretName() string { return k.Name }

func (k *Kubeconfig) generate(in inputs) (map[string][]byte, error) {
	user := &clientcmdapi.AuthInfo{Token: k.Token, TokenFile: k.TokenFile}
	if k.Certificate != nil {
		data, err := k.Certificate.generate(in)
		if err != nil {
			return nil, err
		}
		user.ClientCertificateData, user.ClientKeyData = data[DataKeyCertificate], data[DataKeyPrivateKey]
	}
	name := k.ContextName
	if name == "" {
		name = k.Name
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: k.Server, CertificateAuthorityData: k.CA, TLSServerName: k.TLSServerName}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: k.Namespace}
	config.CurrentContext = name
	out, err := clientcmd.Write(*config)
	return map[string][]byte{DataKeyKubeconfig: out}, err
}

// PrivateKey is a key without certificate, such as the one that signs the tokens of service accounts.
type PrivateKey struct {
	// Name is the name of the credential.
	Name string
	// RSABits makes it an RSA key of that size. The default is an ECDSA P-256 key, which costs a thousandth of the time.
	RSABits int
}

// SecretName implements Config.
func (k *PrivateKey) SecretName() string { return k.Name }

func (k *PrivateKey) generate(inputs) (map[string][]byte, error) {
	if k.RSABits == 0 {
		_, keyPEM, err := newECDSAKey()
		return map[string][]byte{DataKeyRSAPrivateKey: keyPEM}, err
	}
	key, err := rsa.GenerateKey(rand.Reader, k.RSABits)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{DataKeyRSAPrivateKey: rsaPEM(key)}, nil
}

// SSHKeyPair is a key pair to log in to machines.
type SSHKeyPair struct {
	// Name is the name of the credential.
	Name string
	// RSABits makes it an RSA key of that size, for infrastructures that support no other. The default is an Ed25519 key.
	RSABits int
}

// SecretName implements Config.
func (k *SSHKeyPair) SecretName() string { return k.Name }

func (k *SSHKeyPair) generate(inputs) (map[string][]byte, error) {
	var public any
	var private []byte
	if k.RSABits > 0 {
		key, err := rsa.GenerateKey(rand.Reader, k.RSABits)
		if err != nil {
			return nil, err
		}
		public, private = key.Public(), rsaPEM(key)
	} else {
		publicKey, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			return nil, err
		}
		public, private = publicKey, pem.EncodeToMemory(block)
	}
	sshKey, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{DataKeyRSAPrivateKey: private, DataKeySSHAuthorizedKeys: ssh.MarshalAuthorizedKey(sshKey)}, nil
}

// Password is a user name with a password of 32 characters.
type Password struct {
	// Name is the name of the credential, and Username that of the user.
	Name, Username string
}

// SecretName implements Config.
func (p *Password) SecretName() string { return p.Name }

func (p *Password) generate(inputs) (map[string][]byte, error) {
	password := randomText()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		DataKeyUserName: []byte(p.Username), DataKeyPassword: []byte(password), DataKeyAuth: []byte(p.Username + ":" + string(hash)),
	}, nil
}

// StaticToken is a list of users who authenticate to a kube-apiserver with a token.
type StaticToken struct {
	// Name is the name of the credential.
	Name string
	// Users are the users, each of whom gets a token.
	Users []TokenUser
}

// TokenUser is a user with a token.
type TokenUser struct {
	// Name and UID identify the user.
	Name, UID string
	// Groups are the groups of the user.
	Groups []string
}

// SecretName implements Config.
func (s *StaticToken) SecretName() string { return s.Name }

func (s *StaticToken) generate(inputs) (map[string][]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	for _, user := range s.Users {
		record := []string{randomText(), user.Name, user.UID}
		if len(user.Groups) > 0 {
			record = append(record, strings.Join(user.Groups, ","))
		}
		if err := w.Write(record); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return map[string][]byte{DataKeyStaticTokenCSV: out.Bytes()}, w.Error()
}

// EncryptionKey is a key with which a kube-apiserver encrypts what it stores in etcd.
type EncryptionKey struct {
	// Name is the name of the credential.
	Name string
	// Provider is the provider of the EncryptionConfiguration: "aescbc" (the default), "aesgcm" or "secretbox". Another one counts only for a key
	// that is yet to be generated: what is stored can be read with the provider that has written it.
	Provider string
}

// SecretName implements Config.
func (e *EncryptionKey) SecretName() string { return e.Name }

func (e *EncryptionKey) generate(in inputs) (map[string][]byte, error) {
	provider := e.Provider
	if provider == "" {
		provider = "aescbc"
	}
	return map[string][]byte{
		DataKeyEncryptionProvider:       []byte(provider),
		DataKeyEncryptionKeyName:        fmt.Appendf(nil, "key%d", in.now.Unix()),
		DataKeyEncryptionSecret:         []byte(randomText()), // 32 bytes, which all three providers accept
		DataKeyEncryptionSecretEncoding: []byte("none"),
	}, nil
}

// checksum returns a checksum of a config. Fields without a value do not count, so that a new field changes no credential. Of a
// CA and of an encryption key only the name counts: they are only replaced by rotation.
func checksum(config Config) (string, error) {
	switch c := config.(type) {
	case *CertificateAuthority:
		config = &CertificateAuthority{Name: c.Name}
	case *EncryptionKey:
		config = &EncryptionKey{Name: c.Name}
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", err
	}
	if raw, err = json.Marshal(withoutEmpty(fields)); err != nil {
		return "", err
	}
	return hash(fmt.Appendf(raw, "%T", config)), nil
}

// withoutEmpty removes fields without a value from a decoded JSON object.
func withoutEmpty(fields map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range fields {
		switch v := value.(type) {
		case map[string]any:
			if v = withoutEmpty(v); len(v) > 0 {
				out[name] = v
			}
		case []any:
			if len(v) > 0 {
				out[name] = v
			}
		case nil:
		case string, float64, bool:
			if v != "" && v != 0.0 && v != false {
				out[name] = v
			}
		}
	}
	return out
}

func newTemplate(name pkix.Name, now time.Time, validity time.Duration) *x509.Certificate {
	if validity == 0 {
		validity = defaultValidity
	}
	return &x509.Certificate{
		Subject: name, NotBefore: now.Add(-clockSkew), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

func sign(template, parent *x509.Certificate, public, private any) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func newECDSAKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

func rsaPEM(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// randomText returns 32 characters with 192 random bits.
func randomText() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}
