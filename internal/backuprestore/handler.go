package backuprestore

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/http/pprof"
	"net/url"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/startup"
)

// forwardedHeader marks requests that another member forwarded, so that they are not forwarded again and again while the leader changes.
const forwardedHeader = "X-Etcd-Backup-Restore-Forwarded"

// handler serves
//
//	/healthz               health of the process
//	/config                its configuration
//	/metrics
//	/snapshot/latest       the latest full snapshot and the deltas after it
//	/snapshot/full         takes a full snapshot and returns it; with ?final=true, the last one before etcd is migrated or deleted
//	/snapshot/delta        takes a delta snapshot and returns it, or null if nothing has changed
//
// A member that does not lead forwards requests for snapshots to the leader.
func (s *server) handler(transport http.RoundTripper) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, map[string]bool{"health": true}) })
	mux.HandleFunc("GET /config", s.trusted(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.config) }))
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /snapshot/latest", s.trusted(s.latest))
	mux.HandleFunc("/snapshot/full", s.trusted(s.onLeader(transport, func(ctx context.Context, r *http.Request) (*snapshot.Snapshot, error) {
		final, _ := strconv.ParseBool(r.URL.Query().Get("final")) // an invalid value counts as false
		ctx, cancel := context.WithTimeout(ctx, s.config.Snapshots.FullTimeout.Duration)
		defer cancel()
		maker := s.active.Load()
		if maker == nil {
			return nil, errNotLeading
		}
		return maker.Full(ctx, final)
	})))
	mux.HandleFunc("/snapshot/delta", s.trusted(s.onLeader(transport, func(ctx context.Context, _ *http.Request) (*snapshot.Snapshot, error) {
		ctx, cancel := context.WithTimeout(ctx, s.config.Snapshots.FullTimeout.Duration)
		defer cancel()
		maker := s.active.Load()
		if maker == nil {
			return nil, errNotLeading
		}
		return maker.Delta(ctx)
	})))
	if s.config.Server.EnableProfiling {
		mux.HandleFunc("/debug/pprof/", s.trusted(pprof.Index))
		mux.HandleFunc("/debug/pprof/cmdline", s.trusted(pprof.Cmdline))
		mux.HandleFunc("/debug/pprof/profile", s.trusted(pprof.Profile))
		mux.HandleFunc("/debug/pprof/symbol", s.trusted(pprof.Symbol))
		mux.HandleFunc("/debug/pprof/trace", s.trusted(pprof.Trace))
	}
	return mux
}

// trusted requires a client certificate, if TLS is configured.
func (s *server) trusted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.VerifiedChains) == 0 {
			reply(w, http.StatusForbidden, failure{"a client certificate is needed"})
			return
		}
		next(w, r)
	}
}

var errNotLeading = errors.New("the member does not lead, or has no store for backups")

// onLeader handles a request if the member leads, and forwards it to the leader otherwise.
func (s *server) onLeader(transport http.RoundTripper, do func(context.Context, *http.Request) (*snapshot.Snapshot, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		leader := s.observer.Leader()
		if s.active.Load() == nil && leader != "" && leader != s.member && r.Header.Get(forwardedHeader) == "" {
			target, err := url.Parse(startup.MemberURL(s.config.Cluster.BackupURL, leader))
			if err != nil {
				reply(w, http.StatusInternalServerError, failure{err.Error()})
				return
			}
			proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(target)
				p.Out.Header.Set(forwardedHeader, s.member)
			}}
			proxy.ServeHTTP(w, r)
			return
		}
		made, err := do(r.Context(), r)
		switch {
		case err == nil:
			reply(w, http.StatusOK, made)
		case errors.Is(err, errNotLeading):
			reply(w, http.StatusServiceUnavailable, failure{err.Error()})
		default:
			logr.FromContextOrDiscard(r.Context()).Error(err, "Cannot take the requested snapshot")
			reply(w, http.StatusInternalServerError, failure{err.Error()})
		}
	}
}

// latestSnapshots is the response of /snapshot/latest.
type latestSnapshots struct {
	FullSnapshot   *snapshot.Snapshot  `json:"fullSnapshot"`
	DeltaSnapshots []snapshot.Snapshot `json:"deltaSnapshots"`
}

func (s *server) latest(w http.ResponseWriter, r *http.Request) {
	if s.store == nil {
		reply(w, http.StatusServiceUnavailable, failure{errNotLeading.Error()})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.config.Etcd.RequestTimeout.Duration)
	defer cancel()
	snapshots, err := s.store.List(ctx)
	if err != nil {
		reply(w, http.StatusInternalServerError, failure{err.Error()})
		return
	}
	out := latestSnapshots{DeltaSnapshots: []snapshot.Snapshot{}}
	if chains := snapshot.Chains(snapshots); len(chains) > 0 {
		out.FullSnapshot, out.DeltaSnapshots = &chains[0].Full, append(out.DeltaSnapshots, chains[0].Deltas...)
	}
	reply(w, http.StatusOK, out)
}

type failure struct {
	Error string `json:"error"`
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only if the client has disconnected
}
