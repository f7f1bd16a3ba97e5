package kube

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// MaxShootResponse is the size of a response of a shoot, such as a list: far more than what thousands of nodes have. What is larger fills the
// memory of the gardenlet, which has other shoots to serve.
const MaxShootResponse = 128 << 20

// ErrTooLarge is the error of a client whose response is larger than its limit.
var ErrTooLarge = errors.New("the response is too large")

// LimitResponses limits the bytes of each response to clients of a config. It is for processes that serve many clusters, as users of each
// decide how large its lists are.
func LimitResponses(config *rest.Config, bytes int64) {
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper { return Limited(transport, bytes) })
}

// Limited returns a transport that limits the bytes of each response.
func Limited(transport http.RoundTripper, bytes int64) http.RoundTripper {
	return &limitedTransport{transport: transport, bytes: bytes}
}

type limitedTransport struct {
	transport http.RoundTripper
	bytes     int64
}

// RoundTrip implements http.RoundTripper.
func (l *limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	// The body of an upgraded connection is more than a reader.
	if response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = LimitedBody(response.Body, l.bytes)
	}
	return response, nil
}

// LimitedBody returns a body that ends with ErrTooLarge after a number of bytes.
func LimitedBody(body io.ReadCloser, bytes int64) io.ReadCloser {
	return &limitedBody{ReadCloser: body, limit: bytes, left: bytes}
}

type limitedBody struct {
	io.ReadCloser
	limit, left int64
}

// Read implements io.Reader. It reads one byte more than allowed, to tell the end of a body from one that goes on.
func (l *limitedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, l.limit)
	}
	return n, err
}
