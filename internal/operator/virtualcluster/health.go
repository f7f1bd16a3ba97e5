package virtualcluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// healthzTimeout is how long the API server may take to respond to /healthz.
const healthzTimeout = 15 * time.Second

// Healthz returns why the kube-apiserver of the virtual garden is not available, or nil if it is. It opens a new connection each time, so that the way to
// it is checked too.
func Healthz(ctx context.Context, runtime client.Reader, set ...func(*rest.Config)) error {
	ctx, cancel := context.WithTimeout(ctx, healthzTimeout)
	defer cancel()
	access, err := Read(ctx, runtime, set...)
	if err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(access.Config)
	if err != nil {
		return fmt.Errorf("connect to the virtual garden: %w", err)
	}
	defer httpClient.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, access.Config.Host+"/healthz", http.NoBody)
	if err != nil {
		return fmt.Errorf("connect to the virtual garden: %w", err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return fmt.Errorf("API server /healthz endpoint does not respond: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)) // so that the connection ends well
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("API server /healthz endpoint responds with status %d", response.StatusCode)
	}
	return nil
}
