// Command server is what the end-to-end test runs in pods: it shows who answers, keeps a file, resolves names, fetches
// pages and uses memory, each when asked to.
package main

import (
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
			eaten[i] = 1 // Only what is written to takes memory.
		}
		answer(w, fmt.Sprintf("ate %d MiB", len(eaten)>>20), err)
	})
	if len(os.Args) > 1 && os.Args[1] == "say" { // for exec
		fmt.Println(os.Args[2:])
		return
	}
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
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
