// Package decoded limits what responses of an API server take when they are decoded: objects are larger than their encoding, and a list of millions of
// empty ones, which has two bytes for each, fills the memory of a process that other clusters need. Users of a cluster decide what its API server returns:
// they may have it served by a program of theirs.
package decoded

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/quantities"
)

const (
	// maxObjects is what the objects of a response may take: what thousands of nodes take is half of it. A watch with more ends.
	maxObjects = 1 << 30
	// maxOther is how many bytes a response may have that is an error, or no protobuf although that was asked for. Of other encodings, it is not known
	// what the objects take.
	maxOther = 256 << 10
	// maxJSON is how many bytes a response may have to a request for JSON, and maxValues how many values: it is an object, or the kinds that an API server
	// serves, of which ten thousand have a quarter of that. Empty objects in a list have three bytes each, and take a kilobyte.
	maxJSON, maxValues = 8 << 20, 1 << 19
	// maxFrame is how many bytes an event of a watch may have, as in the client.
	maxFrame = 16 << 20
	// frameHeader is how many bytes the length of an event has.
	frameHeader = 4
)

// envelope begins an object in protobuf.
var envelope = []byte("k8s\x00")

// LimitResponses limits the responses to clients of a config whose objects are of a scheme: their bytes, and what is decoded from them. Lists of objects
// have to be requested in protobuf: those in JSON may have few bytes. Of a watch in JSON, only the bytes are limited.
func LimitResponses(config *rest.Config, scheme *runtime.Scheme) {
	kube.LimitResponses(config, kube.MaxShootResponse)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next, scheme, maxObjects} })
}

type transport struct {
	next   http.RoundTripper
	scheme *runtime.Scheme
	most   int64
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	wanted := runtime.ContentTypeJSON
	if strings.HasPrefix(request.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		wanted = runtime.ContentTypeProtobuf
	}
	mediaType, _, err := mime.ParseMediaType(cmp.Or(response.Header.Get("Content-Type"), wanted)) // clients decode what has no type as what they wanted
	isWatch := request.URL.Query().Get("watch") != "" && response.StatusCode == http.StatusOK
	switch isProtobuf := err == nil && mediaType == runtime.ContentTypeProtobuf; {
	case isProtobuf && isWatch: // whatever the response says: the client reads events
		together := &walk{left: t.most} // whoever watches may keep all
		response.Body = &events{ReadCloser: response.Body, check: func(data []byte) error { return t.event(data, together) }}
	case isProtobuf:
		response.Body = &whole{ReadCloser: response.Body, check: func(data []byte) error { return t.object(data, &walk{left: t.most}) }}
	case mediaType != runtime.ContentTypeJSON || wanted != mediaType || response.StatusCode >= http.StatusBadRequest:
		response.Body = &whole{ReadCloser: kube.LimitedBody(response.Body, maxOther), check: func(data []byte) error { return text(data, mediaType) }}
	case !isWatch:
		response.Body = &whole{ReadCloser: kube.LimitedBody(response.Body, maxJSON), check: func(data []byte) error { return text(data, mediaType) }}
	}
	return response, nil
}

// text returns why a response in another encoding than protobuf must not be decoded. Whatever it is for, it is decoded as the kind that it says it is.
func text(data []byte, mediaType string) error {
	switch {
	case bytes.Count(data, []byte(",")) > maxValues:
		return fmt.Errorf("%w: it has more than %d values", kube.ErrTooLarge, maxValues)
	case quantities.Slow(data, mediaType):
		return fmt.Errorf("%w: a quantity in it has too large an exponent, or too many digits", kube.ErrTooLarge)
	}
	return nil
}

var errTwice = errors.New("an object in protobuf has a field twice")

// object returns why an object in its envelope must not be decoded, and counts down what it takes.
func (t *transport) object(data []byte, w *walk) error {
	data, ok := bytes.CutPrefix(data, envelope)
	if !ok {
		return nil // clients refuse it
	}
	object := &runtime.Unknown{}
	raw, err := cutRaw(data, object)
	if err != nil {
		return err
	}
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	if (kind.Kind == "" || kind.Version == "") && len(raw) > maxOther { // it is decoded to what the client expects
		return fmt.Errorf("%w: it has more than %d bytes of an unknown kind", kube.ErrTooLarge, maxOther)
	}
	if of := t.typeOf(kind); of != nil && !(w.take(int64(of.Size())) && w.message(raw, fieldsOf(of), 0)) {
		return fmt.Errorf("%w: the objects in it take more than %d bytes, or are nested too deeply", kube.ErrTooLarge, t.most)
	}
	return nil
}

// cutRaw decodes an object but for its content, which it returns without copying it.
func cutRaw(data []byte, into *runtime.Unknown) (raw []byte, err error) {
	const contentTag = 2<<3 | 2
	var rest []byte
	for left := data; len(left) > 0; {
		tag, n := varint(left)
		length, m := varint(left[n:])
		if n == 0 || m == 0 || tag&7 != 2 || length > uint64(len(left)-n-m) {
			return nil, errors.New("an object in protobuf is malformed")
		}
		end := n + m + int(length) //nolint:gosec // it is not longer than left
		switch {
		case tag != contentTag:
			rest = append(rest, left[:end]...)
		case raw != nil:
			return nil, errTwice
		default:
			raw = left[n+m : end]
		}
		left = left[end:]
	}
	return raw, into.Unmarshal(rest)
}

// typeOf returns the type that an object of a kind is decoded to, or nil if there is none.
func (t *transport) typeOf(kind schema.GroupVersionKind) reflect.Type {
	switch kind {
	case metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"):
		return reflect.TypeFor[metav1.PartialObjectMetadata]()
	case metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"):
		return reflect.TypeFor[metav1.PartialObjectMetadataList]()
	}
	object, err := t.scheme.New(kind)
	if err != nil {
		return nil
	}
	return reflect.TypeOf(object).Elem()
}

// event returns why an event of a watch must not be decoded.
func (t *transport) event(data []byte, w *walk) error {
	event := &metav1.WatchEvent{}
	if err := event.Unmarshal(data); err != nil {
		return err
	}
	return t.object(event.Object.Raw, w)
}

// whole is a body that is read to its end first.
type whole struct {
	io.ReadCloser
	check func([]byte) error
	rest  *bytes.Reader
}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	if w.rest == nil {
		data, err := io.ReadAll(w.ReadCloser)
		if err != nil {
			return 0, err
		}
		if err := w.check(data); err != nil {
			return 0, err
		}
		w.rest = bytes.NewReader(data)
	}
	return w.rest.Read(p)
}

// events is the body of a watch, each event of which has its length before it.
type events struct {
	io.ReadCloser
	check func([]byte) error
	rest  bytes.Reader
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	if e.rest.Len() == 0 {
		frame := make([]byte, frameHeader)
		if _, err := io.ReadFull(e.ReadCloser, frame); err != nil {
			return 0, err
		}
		length := binary.BigEndian.Uint32(frame)
		if length > maxFrame {
			return 0, kube.ErrTooLarge
		}
		frame = append(frame, make([]byte, length)...)
		if _, err := io.ReadFull(e.ReadCloser, frame[frameHeader:]); err != nil {
			return 0, err
		}
		if err := e.check(frame[frameHeader:]); err != nil {
			return 0, err
		}
		e.rest.Reset(frame)
	}
	return e.rest.Read(p)
}
