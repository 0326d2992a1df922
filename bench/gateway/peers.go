//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"
)

// A peer is a gateway between the load and the mock, or the mock itself.
type peer struct {
	name      string
	identical bool // passes answers on as they are
	config    string
	command   []string // with {config}, {listen}, {port}, {upstream}, {dir}, {kind}, {heal}, {tokenizer} to be filled in
	env       []string
	heal      string         // the value of {heal}
	versionOf []string       // command that prints the version
	versionAt *regexp.Regexp // what it prints, with the version in parentheses

	version string
	address string // host:port
	process *process
	idle    usage // once it has answered for the first time
	first   error // wrong answers before the first round
	loaded  usage // memory, the largest seen after a slice
}

// A place is what a peer's configuration and command are filled with.
type place struct {
	Listen, Port   string // where the peer listens: host:port, and its port alone
	Upstream       string // host:port of the mock
	UpstreamHost   string
	UpstreamPort   string
	Dir            string // a folder of its own
	Config         string // file with the configuration
	Kind           string // of server that the mock stands for
	Heal           string
	Tokenizer      string
	Chat           bool // the requests are for chat
	Workers, Model string
}

// nginxConfig: two workers; connections to the mock are kept; nothing is held back, as streams need it; bodies stay in
// memory. The rest are nginx's defaults.
const nginxConfig = `worker_processes {{.Workers}};
daemon off;
pid {{.Dir}}/nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path {{.Dir}}/body;
	proxy_temp_path {{.Dir}}/proxy;
	fastcgi_temp_path {{.Dir}}/fastcgi;
	uwsgi_temp_path {{.Dir}}/uwsgi;
	scgi_temp_path {{.Dir}}/scgi;
	client_body_buffer_size 128k;
	client_max_body_size 16m;
	keepalive_requests 100000000;
	upstream mock {
		server {{.Upstream}};
		keepalive 64;
		keepalive_requests 100000000;
	}
	server {
		listen {{.Listen}};
		location / {
			proxy_pass http://mock;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
`

// envoyConfig: one static cluster, no access log, connections spread evenly over the workers. The rest are Envoy's
// defaults.
const envoyConfig = `static_resources:
  listeners:
  - name: bench
    address: {socket_address: {address: 127.0.0.1, port_value: {{.Port}}}}
    connection_balance_config: {exact_balance: {}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: "/"}
                route: {cluster: mock, timeout: 0s}
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: mock
    type: STATIC
    load_assignment:
      cluster_name: mock
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: {{.UpstreamHost}}, port_value: {{.UpstreamPort}}}}}
`

// litellmConfig: one model, no keys, no data base, no callbacks. Under gunicorn: the workers of its other way to start are
// killed where they take long to load, as on a busy machine.
const litellmConfig = `model_list:
- model_name: {{.Model}}
  litellm_params:
    model: {{if .Chat}}openai{{else}}text-completion-openai{{end}}/{{.Model}}
    api_base: http://{{.Upstream}}/v1
    api_key: sk-bench
litellm_settings:
  telemetry: false
  num_retries: 0
`

// peerWorkers is the workers of every peer that is told a number, and Go's for those that are Go.
const peerWorkers = "2"

// peers lists who is measured: the mock without a gateway, what is installed in dir, and unfray without healing and with
// each of some modes.
func peers(dir, unfray, unfrayArgs string, healModes []string) []*peer {
	all := []*peer{{name: "direct", identical: true}}
	if path := findTool(dir, "nginx", "/usr/sbin/nginx"); path != "" {
		all = append(all, &peer{
			name: "nginx", identical: true, config: nginxConfig,
			command:   []string{path, "-e", "stderr", "-p", "{dir}", "-c", "{config}"},
			versionOf: []string{path, "-v"}, versionAt: regexp.MustCompile(`nginx/(\S+)`),
		})
	}
	if path := findTool(dir, "envoy", ""); path != "" {
		all = append(all, &peer{
			name: "Envoy", identical: true, config: envoyConfig,
			command:   []string{path, "-c", "{config}", "--concurrency", peerWorkers, "--log-level", "error", "--disable-hot-restart"},
			versionOf: []string{path, "--version"}, versionAt: regexp.MustCompile(`/(\d+\.\d+\.\d+)/`),
		})
	}
	if path := findTool(dir, "litellm", ""); path != "" {
		all = append(all, &peer{
			name: "LiteLLM", config: litellmConfig,
			command: []string{path, "--config", "{config}", "--host", "127.0.0.1", "--port", "{port}", "--num_workers", peerWorkers, "--run_gunicorn", "--telemetry", "False"},
			env:     []string{"LITELLM_LOG=ERROR", "LITELLM_MODE=PRODUCTION", "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true"},
			versionOf: []string{filepath.Join(filepath.Dir(path), "python"), "-c",
				`import importlib.metadata; print("litellm", importlib.metadata.version("litellm"))`},
			versionAt: regexp.MustCompile(`litellm (\S+)`),
		})
	}
	if unfray != "" {
		command := append([]string{unfray}, strings.Fields(unfrayArgs)...)
		for _, mode := range append([]string{"off"}, healModes...) {
			all = append(all, &peer{
				name: "unfray, " + mode, identical: mode == "off", command: command, env: []string{"GOMAXPROCS=" + peerWorkers}, heal: mode,
				versionOf: []string{unfray, "version"}, versionAt: regexp.MustCompile(`unfray (\S+)`),
			})
		}
	}
	return all
}

// findTool returns the path of a program that setup.sh puts into dir, else fallback if that is there, else "".
func findTool(dir, name, fallback string) string {
	for _, path := range []string{filepath.Join(dir, "bin", name), fallback} {
		if info, err := os.Stat(path); path != "" && err == nil && !info.IsDir() {
			if full, err := filepath.Abs(path); err == nil {
				return full
			}
		}
	}
	return ""
}

// start starts a peer in front of the mock and waits until it answers a request of the bench.
func (p *peer) start(ctx context.Context, dir string, at place, cpus string, try *load) error {
	if p.command == nil {
		p.address = at.Upstream
		return nil
	}
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	at.Dir = filepath.Join(dir, strings.NewReplacer(" ", "-", ",", "").Replace(p.name))
	if err := os.MkdirAll(at.Dir, 0o755); err != nil {
		return err
	}
	at.Listen, at.Heal, at.Workers, at.Model = listen, p.heal, peerWorkers, modelName
	at.Config = filepath.Join(at.Dir, "config.yaml")
	if _, at.Port, err = net.SplitHostPort(listen); err != nil {
		return err
	}
	config, command, err := p.fill(at)
	if err != nil {
		return err
	}
	if err := os.WriteFile(at.Config, config, 0o644); err != nil {
		return err
	}
	p.version = p.findVersion(ctx)
	if p.process, err = startProcess(command, p.env, cpus, filepath.Join(at.Dir, "log")); err != nil {
		return err
	}
	p.address = listen
	if err := p.ready(ctx, try); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.idle = p.process.use()
	return nil
}

// fill renders the configuration and the command.
func (p *peer) fill(at place) (config []byte, command []string, err error) {
	if at.UpstreamHost, at.UpstreamPort, err = net.SplitHostPort(at.Upstream); err != nil {
		return nil, nil, err
	}
	t, err := template.New(p.name).Option("missingkey=error").Parse(p.config)
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, at); err != nil {
		return nil, nil, err
	}
	r := strings.NewReplacer("{config}", at.Config, "{listen}", at.Listen, "{port}", at.Port, "{upstream}", "http://"+at.Upstream,
		"{dir}", at.Dir, "{kind}", at.Kind, "{heal}", at.Heal, "{tokenizer}", at.Tokenizer)
	for _, arg := range p.command {
		command = append(command, r.Replace(arg))
	}
	return b.Bytes(), command, nil
}

// readyLimit is how long a peer may take to start, wrongLimit how long it may then answer wrongly. LiteLLM takes 10 to 30
// seconds, several times that on a busy machine.
const (
	readyLimit = 180 * time.Second
	wrongLimit = 5 * time.Second
)

// ready waits until a peer answers rightly.
func (p *peer) ready(ctx context.Context, try *load) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	c := &client{address: p.address}
	defer c.close()
	e := &try.exercises[0]
	n := newSerial(0)
	body := e.body.fill(nil, n)
	var wrong time.Time // of the first wrong answer
	for {
		status, _, err := c.exchange(ctx, appendRequest(nil, p.address, try.route, body))
		if err == nil {
			if err = try.check(c, status, answerText(nil, c.body, try.route), e.text.fill(nil, n)); err == nil {
				return nil
			}
			if wrong.IsZero() && status == http.StatusOK {
				wrong = time.Now()
			}
			if !wrong.IsZero() && time.Since(wrong) > wrongLimit {
				return p.process.failure("it answers, but wrongly: " + err.Error())
			}
		}
		select {
		case <-p.process.exited:
			return p.process.failure("it ended before it was ready")
		case <-ctx.Done():
			return p.process.failure(fmt.Sprintf("it is not ready after %v: %v", readyLimit, err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *peer) stop() {
	if p.process != nil {
		p.process.stop()
	}
}

func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// findVersion returns the version that the peer's program prints, "" where it cannot be found.
func (p *peer) findVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	out, _ := exec.CommandContext(ctx, p.versionOf[0], p.versionOf[1:]...).CombinedOutput() // without it the table names none
	if found := p.versionAt.FindSubmatch(out); found != nil {
		return string(found[1])
	}
	return ""
}

// startMock starts the mock as a process of its own and returns its host:port.
func startMock(ctx context.Context, dir, kind, tokenizer, cpus string) (*process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	logs := filepath.Join(dir, "mock.log")
	p, err := startProcess([]string{self, "-kind", kind, "-tokenizer", tokenizer, "mock"}, nil, cpus, logs)
	if err != nil {
		return nil, "", err
	}
	for wait := time.Now().Add(answerLimit); time.Now().Before(wait) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(logs)
		if err != nil {
			return p, "", err
		}
		if line, _, ok := strings.Cut(string(text), "\n"); ok && strings.HasPrefix(line, "http://") {
			return p, strings.TrimPrefix(line, "http://"), nil
		}
	}
	return p, "", errors.Join(p.failure("the mock did not start"), ctx.Err())
}
