package discoveryserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"gardener.cloud/gardener/internal/shoot/issuer"
	"gardener.cloud/gardener/internal/stage/serviceaccountkey"
)

const (
	// configPath is where the OpenID configuration of an issuer is. Source: OpenID Connect Discovery 1.0, section 4.
	configPath   = "/.well-known/openid-configuration"
	projectParam = "project"
	uidParam     = "uid"

	typeJSON = "application/json"
	// typeKeySet is the media type of JSON Web Key Sets. Source: RFC 7517, section 8.5.
	typeKeySet = "application/jwk-set+json"

	// fresh is how long caches may use a document without asking again. New keys sign tokens minutes after they are published, so it is short. The entity
	// tag makes asking cheap.
	fresh = "public, max-age=300"
)

// find returns a document for a request.
type find func(ctx context.Context, project, uid string) ([]byte, error)

// handler serves the documents.
type handler struct {
	shoots   shoots
	refusals *refusals
	metrics  *metrics
	// workloadIdentity returns the documents of the issuer of WorkloadIdentity tokens. It is nil if there is none.
	workloadIdentity func() issuerDocuments
}

// handler returns the HTTP handler.
func (h *handler) handler() http.Handler {
	mux := http.NewServeMux()
	ofShoot := path(issuer.URL("", "{"+projectParam+"}", "{"+uidParam+"}"))
	h.serve(mux, ofShoot+configPath, "shoot-openid-configuration", typeJSON, func(ctx context.Context, project, uid string) ([]byte, error) {
		documents, err := h.shoots.issuer(ctx, project, uid)
		return documents.config, h.report(ctx, "issuer", project, uid, err)
	})
	h.serve(mux, serviceaccountkey.KeySetURL(ofShoot), "shoot-jwks", typeKeySet, func(ctx context.Context, project, uid string) ([]byte, error) {
		documents, err := h.shoots.issuer(ctx, project, uid)
		return documents.keySet, h.report(ctx, "issuer", project, uid, err)
	})
	h.serve(mux, strings.TrimSuffix(ofShoot, "/issuer")+"/cluster-ca", "shoot-cluster-ca", typeJSON, func(ctx context.Context, project, uid string) ([]byte, error) {
		certs, err := h.shoots.clusterCA(ctx, project, uid)
		return certs, h.report(ctx, "cluster-ca", project, uid, err)
	})
	if h.workloadIdentity != nil {
		ofGarden := path(issuer.WorkloadIdentityURL(""))
		h.serve(mux, ofGarden+configPath, "workload-identity-openid-configuration", typeJSON, func(context.Context, string, string) ([]byte, error) {
			return h.workloadIdentity().config, nil
		})
		h.serve(mux, serviceaccountkey.KeySetURL(ofGarden), "workload-identity-jwks", typeKeySet, func(context.Context, string, string) ([]byte, error) {
			return h.workloadIdentity().keySet, nil
		})
	}
	h.serve(mux, "/", "none", typeJSON, func(context.Context, string, string) ([]byte, error) { return nil, errNotFound })
	return mux
}

// path returns the path of a URL without a host.
func path(url string) string { return strings.TrimPrefix(url, "https://") }

// report keeps account of what is refused. For clients, it is not found.
func (h *handler) report(ctx context.Context, of, project, uid string, err error) error {
	var refused *refusedError
	if errors.As(err, &refused) {
		err = errNotFound
	}
	if ctx.Err() == nil {
		h.refusals.report(strings.Join([]string{of, project, uid}, "/"), refused)
	}
	return err
}

// serve adds a document at a pattern of paths.
func (h *handler) serve(mux *http.ServeMux, pattern, document, contentType string, find find) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Strict-Transport-Security", "max-age=31536000")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			h.fail(w, document, http.StatusMethodNotAllowed)
			return
		}
		body, err := find(r.Context(), r.PathValue(projectParam), r.PathValue(uidParam))
		switch {
		case errors.Is(err, errNotFound):
			h.fail(w, document, http.StatusNotFound)
			return
		case err != nil:
			logr.FromContextOrDiscard(r.Context()).Error(err, "Cannot answer a request", "document", document)
			h.fail(w, document, http.StatusInternalServerError)
			return
		}
		sum := sha256.Sum256(body)
		header.Set("Content-Type", contentType)
		header.Set("Cache-Control", fresh)
		header.Set("ETag", `"`+base64.RawURLEncoding.EncodeToString(sum[:])+`"`)
		counted := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		http.ServeContent(counted, r, "", time.Time{}, bytes.NewReader(body)) // it knows conditional requests
		h.metrics.answered(document, counted.code)
	})
}

// fail answers with an error, as JSON like everything else.
func (h *handler) fail(w http.ResponseWriter, document string, code int) {
	h.metrics.answered(document, code)
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct { // the client may be gone
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, strings.ToLower(http.StatusText(code))})
}

// statusWriter keeps the status code.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}
