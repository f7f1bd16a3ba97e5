module gardener.cloud/gardener/distribution/crun

go 1.26.0

require (
	github.com/BurntSushi/toml v1.5.0
	github.com/coreos/go-systemd/v22 v22.7.0
	github.com/google/go-cmp v0.7.0
)

require github.com/godbus/dbus/v5 v5.1.0 // indirect
