//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/gateway"
)

// testGateway reaches a server in the seed through the gateway: routes work as soon as they exist, and connections outlive them.
func testGateway(t *testing.T, l *landscape) {
	address := l.gatewayAddress(t)
	route := func(host string) *gatewayv1.TLSRoute {
		return exposure.Objects(exposure.Values{Namespace: "garden", Name: "e2e", Hosts: []string{host}, Service: "gardener-apiserver", Port: 443})[0].(*gatewayv1.TLSRoute)
	}
	first := route("first.example.com")
	if err := l.client.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.client.Delete(t.Context(), first) })
	conn := eventuallyOpen(t, address, "first.example.com")
	defer conn.Close() //nolint:errcheck // it was only read
	expectHealthy(t, conn)
	if other, err := dialTLS(address, "second.example.com"); err == nil {
		_ = other.Close()
		t.Error("a name without a route is accepted")
	}
	before := first.DeepCopy()
	first.Spec.Hostnames = route("second.example.com").Spec.Hostnames
	if err := l.client.Patch(t.Context(), first, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	_ = eventuallyOpen(t, address, "second.example.com").Close()
	if old, err := dialTLS(address, "first.example.com"); err == nil {
		_ = old.Close()
		t.Error("the old name is still accepted")
	}
	expectHealthy(t, conn)

	// HAProxy restarts with its routes.
	pods := &corev1.PodList{}
	if err := l.client.List(t.Context(), pods, client.InNamespace(gateway.Namespace)); err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	if err := l.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(gateway.Namespace), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	_ = eventuallyOpen(t, address, "second.example.com").Close()
}

// gatewayAddress waits for the address of the gateway of the runtime cluster.
func (l *landscape) gatewayAddress(t *testing.T) (address string) {
	t.Helper()
	await(t, l.client, func(gateways []*gatewayv1.Gateway) error {
		if len(gateways) != 1 || len(gateways[0].Status.Addresses) != 1 {
			return errors.New("the gateway has no address")
		}
		address = net.JoinHostPort(gateways[0].Status.Addresses[0].Value, "443")
		return nil
	}, client.InNamespace(gateway.Namespace))
	return address
}

func dialTLS(address, name string) (*tls.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", address, &tls.Config{ServerName: name, InsecureSkipVerify: true})
}

func eventuallyOpen(t *testing.T, address, name string) *tls.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(working(t), timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := dialTLS(address, name)
		if err == nil {
			return conn
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

// expectHealthy requests the health of an API server over an open connection.
func expectHealthy(t *testing.T, conn *tls.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: garden\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "ok" {
		t.Errorf("answer is %q, %v", body, err)
	}
}
