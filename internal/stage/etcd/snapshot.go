package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	component "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/secrets"
)

// FinalSnapshot is the full snapshot after which nothing is written any more.
const FinalSnapshot = "full?final=true"

// Snapshot has the leader of the main etcd take a snapshot of a kind: "delta" is what was changed since the last one.
func Snapshot(ctx context.Context, run *stage.Run, set *credentials.Set, kind string) error {
	generated, err := set.OfEtcd()
	if err != nil {
		return err
	}
	own := generated.Current(credentials.EtcdClient)
	pair, err := tls.X509KeyPair(own.Data[secrets.DataKeyCertificate], own.Data[secrets.DataKeyPrivateKey])
	if err != nil {
		return fmt.Errorf("Secret %q: %w", own.Name, err)
	}
	cas := x509.NewCertPool()
	cas.AppendCertsFromPEM(generated.Bundle(constants.SecretNameCAETCD))
	url := fmt.Sprintf("https://%s.%s.svc:%d/snapshot/%s", component.ServiceName(run.Of, component.Main), run.Namespace, component.PortBackup, kind)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: cas, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
