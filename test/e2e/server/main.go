// Command server runs in pods of the end-to-end tests: it returns its host name, keeps a file, resolves names, fetches
// URLs, calls the API server, uses memory, and denies objects as a webhook, each on request. "probe URL" sends requests itself.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	http.HandleFunc("GET /hostname", func(w http.ResponseWriter, _ *http.Request) {
		name, err := os.Hostname()
		answer(w, name, err)
	})
	http.HandleFunc("GET /file", func(w http.ResponseWriter, _ *http.Request) {
		data, err := os.ReadFile("/data/file")
		answer(w, string(data), err)
	})
	http.HandleFunc("PUT /file", func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = os.WriteFile("/data/file", data, 0o600)
		}
		log.Printf("wrote %q", data)
		answer(w, "written", err)
	})
	http.HandleFunc("GET /resolve", func(w http.ResponseWriter, r *http.Request) {
		addresses, err := net.DefaultResolver.LookupHost(r.Context(), r.FormValue("name"))
		answer(w, fmt.Sprint(addresses), err)
	})
	http.HandleFunc("GET /fetch", func(w http.ResponseWriter, r *http.Request) {
		client := http.Client{Timeout: 10 * time.Second}
		response, err := client.Get(r.FormValue("url")) //nolint:noctx // it has a timeout
		if err != nil {
			answer(w, "", err)
			return
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		answer(w, string(data), err)
	})
	http.HandleFunc("GET /eat", func(w http.ResponseWriter, r *http.Request) {
		mebibytes, err := strconv.Atoi(r.FormValue("mebibytes"))
		eaten = make([]byte, mebibytes<<20)
		for i := range eaten {
			eaten[i] = 1 // Only pages that are written to take memory.
		}
		answer(w, fmt.Sprintf("ate %d MiB", len(eaten)>>20), err)
	})
	http.HandleFunc("GET /api", func(w http.ResponseWriter, r *http.Request) {
		data, err := askAPI(r.FormValue("path"))
		answer(w, string(data), err)
	})
	http.HandleFunc("POST /validate", validate)
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "say": // for exec
			fmt.Println(os.Args[2:])
			return
		case "probe":
			probe(os.Args[2])
		}
	}
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 5 * time.Second}
	log.Print("listening on ", server.Addr)
	if _, err := os.Stat(certificate); err == nil {
		secure := &http.Server{Addr: ":8443", ReadHeaderTimeout: 5 * time.Second}
		go func() { log.Fatal(secure.ListenAndServeTLS(certificate, "/tls/tls.key")) }()
	}
	log.Fatal(server.ListenAndServe())
}

// certificate exists if the server is used as a webhook.
const certificate = "/tls/tls.crt"

// askAPI sends a request to the API server of the cluster by its name, as the service account of the pod.
func askAPI(path string) ([]byte, error) {
	const dir = "/var/run/secrets/kubernetes.io/serviceaccount/"
	ca, err := os.ReadFile(dir + "ca.crt")
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(dir + "token")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	request, err := http.NewRequest(http.MethodGet, "https://kubernetes.default.svc"+path, http.NoBody) //nolint:noctx // it has a timeout
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// validate is an admission webhook that denies objects with the name "refused".
func validate(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID  string `json:"uid"`
			Name string `json:"name"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": map[string]any{
		"uid": review.Request.UID, "allowed": review.Request.Name != "refused", "status": map[string]any{"message": "the pod says no"},
	}})
}

// probe sends requests to a URL ten times a second, over a new connection each time, and writes a line for each: the time of the request
// in milliseconds, and "ok" or the error. A connection may take up to a second; a response may take longer on a busy machine. It never
// ends.
func probe(url string) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext,
	}}
	for at := range time.Tick(100 * time.Millisecond) {
		go func() {
			result := "ok"
			response, err := client.Get(url) //nolint:noctx // it has a timeout
			switch {
			case err != nil:
				result = strconv.Quote(err.Error())
			case response.StatusCode != http.StatusOK:
				result = strconv.Quote(response.Status)
			}
			if err == nil {
				_ = response.Body.Close()
			}
			fmt.Println(at.UnixMilli(), result)
		}()
	}
}

// eaten keeps memory in use.
var eaten []byte

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, text)
}
