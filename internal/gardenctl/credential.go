package gardenctl

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// A credential is renewed when a fifth of its validity is left, so that clients can use it for a while; at the latest a minute before it
	// expires, as clocks differ.
	renewWhenLeft = 5
	leastLeft     = time.Minute
)

// cached is a credential in the cache.
type cached struct {
	// Issued is when it was requested.
	Issued metav1.Time `json:"issued"`
	// Credential is the response for kubectl.
	Credential clientauthenticationv1.ExecCredential `json:"credential"`
}

func (c *cli) credentialCommand() *cobra.Command {
	var a access
	cmd := &cobra.Command{
		Use: "credential SHOOT", Short: "Print credentials of a shoot for kubectl (kubeconfigs created with --exec run it)", Args: cobra.ExactArgs(1),
		Long: c.examples(`kubeconfig my-cluster --exec     # creates a kubeconfig that runs this command`) + `
It implements client.authentication.k8s.io/v1. Credentials are cached in the cache directory, readable only for you, until a fifth of
their validity is left.`,
		ValidArgsFunction: c.completion(c.shootNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(); err != nil {
				return err
			}
			ctx, cancel := within(cmd.Context(), requestTimeout)
			defer cancel()
			p, err := c.find(ctx, args)
			if err != nil {
				return err
			}
			file := c.cacheFile(p, a)
			credential := c.fresh(file)
			if credential == nil {
				config, until, err := c.requestKubeconfig(ctx, p, a)
				if err != nil {
					return err
				}
				if credential, err = credentialOf(config, until); err != nil {
					return err
				}
				if err := c.keep(file, credential); err != nil {
					fmt.Fprintln(c.ErrOut, "warning: the credentials cannot be cached, and are requested each time: "+oneLine(err))
				}
			}
			return json.NewEncoder(c.Out).Encode(credential)
		},
	}
	a.addFlags(cmd)
	return cmd
}

// credentialOf returns the credential in a kubeconfig that the garden issued.
func credentialOf(config *clientcmdapi.Config, until time.Time) (*clientauthenticationv1.ExecCredential, error) {
	user, err := userOf(config)
	if err != nil {
		return nil, err
	}
	if len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0 {
		return nil, errors.New("the garden's response has no client certificate")
	}
	expires := metav1.NewTime(until)
	return &clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: clientauthenticationv1.SchemeGroupVersion.String(), Kind: "ExecCredential"},
		Status: &clientauthenticationv1.ExecCredentialStatus{
			ExpirationTimestamp: &expires, ClientCertificateData: string(user.ClientCertificateData), ClientKeyData: string(user.ClientKeyData),
		},
	}, nil
}

// cacheFile is the file of a credential in the cache. Its name depends on everything that the credential depends on.
func (c *cli) cacheFile(p *place, a access) string {
	name := fingerprint(p.config.Host, p.kubeconfig, p.context, p.namespace, p.name, a.role(), a.expiration.String())
	return filepath.Join(c.CacheDir, "credentials", name+".json")
}

// fingerprint is a short hash of strings, for the names of files.
func fingerprint(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// fresh returns the credential in a file, or nil if there is none that is valid long enough. A file that cannot be read counts as none.
func (c *cli) fresh(file string) *clientauthenticationv1.ExecCredential {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	k := &cached{}
	if err := json.Unmarshal(data, k); err != nil || k.Credential.Status == nil || k.Credential.Status.ExpirationTimestamp == nil {
		return nil
	}
	until := k.Credential.Status.ExpirationTimestamp.Time
	if left := until.Sub(c.Clock.Now()); left < max(until.Sub(k.Issued.Time)/renewWhenLeft, leastLeft) {
		return nil
	}
	return &k.Credential
}

// keep writes a credential to a file that only the user can read.
func (c *cli) keep(file string, credential *clientauthenticationv1.ExecCredential) error {
	data, err := json.Marshal(cached{Issued: metav1.NewTime(c.Clock.Now()), Credential: *credential})
	if err != nil {
		return err
	}
	return writePrivate(file, data)
}
