/**
 * nginx as the reference proxy (`proxy_pass` without parsing, one worker) and as a provider of static
 * replies.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PATHS, wholeReply, type Shape } from '../load/sample-traffic.js'
import { listening, workerOf, type Children } from './children.js'

/** A running nginx. */
export interface Nginx {
  readonly port: number
  /** The one worker. */
  readonly pid: number
}

/** The program, its processor core, and the port where it listens. */
export interface NginxSettings {
  /** The path of the program. */
  readonly nginx: string
  readonly core: number
  readonly port: number
}

/** Starts nginx as a provider: the whole reply of each shape at its path. */
export function startAnswers(children: Children, { nginx, core, port }: NginxSettings): Promise<Nginx> {
  const locations = (Object.keys(PATHS) as Shape[]).map((shape) => {
    const reply = wholeReply(shape)
    if (/['$\\]/.test(reply)) throw new Error('an nginx string cannot contain this reply')
    return `location = ${PATHS[shape]} { default_type application/json; return 200 '${reply}'; }`
  })
  return start(children, { nginx, core, port }, { locations: locations.join('\n') })
}

/** Settings of nginx as a proxy. */
export interface ProxySettings extends NginxSettings {
  readonly upstreamPort: number
  readonly buffering: 'on' | 'off'
}

/** Starts nginx as a proxy of the port; `buffering` off is the setting for streams. */
export function startProxy(
  children: Children,
  { nginx, core, port, upstreamPort, buffering }: ProxySettings,
): Promise<Nginx> {
  const upstream = `upstream provider {
    server 127.0.0.1:${upstreamPort}; keepalive 512; keepalive_requests 1000000000;
  }`
  const location = `location / {
    proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_buffering ${buffering};
  }`
  return start(children, { nginx, core, port }, { upstream, locations: location })
}

async function start(
  children: Children,
  { nginx, core, port }: NginxSettings,
  { upstream = '', locations }: { upstream?: string; locations: string },
): Promise<Nginx> {
  const folder = join(children.folder, `nginx-${port}`)
  mkdirSync(folder)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ')
  // Started by root, nginx would drop its privileges and could not use the folder.
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `${user} worker_processes 1; daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 75s;
  client_max_body_size 64m; client_body_buffer_size 2m; ${temporary}
  ${upstream}
  server { listen 127.0.0.1:${port}; ${locations} }
}
`,
  )
  const started = children.start(core, [nginx, '-p', folder, '-c', file], { stdio: 'ignore' })
  await listening(port, started)
  return { port, pid: await workerOf(started) }
}
