/**
 * HAProxy and nginx in front of gateways of this machine, with the configuration files of the documentation:
 * only addresses, certificates and paths of files are replaced.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageFile } from '../../src/config/package-file.js'

/** The page that contains the file of each program. */
const PAGES = {
  haproxy: 'docs/how-to/run-behind-haproxy.md',
  nginx: 'docs/how-to/run-behind-nginx-or-elb.md',
} as const
export type BalancerName = keyof typeof PAGES

/** The port of the load balancer, and the gateways that it uses. */
export interface BalancerPlaces {
  readonly port: number
  /** For files of nginx. */
  readonly folder: string
  /** Two of them, as on the pages. */
  readonly gateways: readonly { readonly port: number; readonly opsPort: number }[]
}

/** The text of the configuration file. Throws if the page has changed and a part is no longer found. */
export function balancerFile(name: BalancerName, places: BalancerPlaces): string {
  const page = readFileSync(packageFile(PAGES[name]), 'utf8')
  const text = new RegExp(`^\`\`\`${name}\\n([^]*?)^\`\`\`$`, 'm').exec(page)?.[1]
  if (text === undefined) throw new Error(`${PAGES[name]} has no block of ${name}`)
  return name === 'haproxy' ? haproxyFile(text, places) : nginxFile(text, places)
}

/** The command that runs the program in the foreground with the file. */
export function balancerCommand(name: BalancerName, file: string): readonly string[] {
  return name === 'haproxy' ? ['haproxy', '-db', '-f', file] : ['nginx', '-c', file]
}

function haproxyFile(text: string, { port, gateways }: BalancerPlaces): string {
  const changes = gateways.map(
    (gateway, at) =>
      [
        `server gateway-${at + 1} 10.0.0.1${at + 1}:8080`,
        `server gateway-${at + 1} 127.0.0.1:${gateway.port} port ${gateway.opsPort}`,
      ] as const,
  )
  return replaced(text, [
    ...changes,
    ['bind :443 ssl crt /etc/haproxy/gateway.pem alpn h2,http/1.1', `bind 127.0.0.1:${port}`],
  ])
}

function nginxFile(text: string, { port, folder, gateways }: BalancerPlaces): string {
  const changes = gateways.map(
    (gateway, at) => [`server 10.0.0.1${at + 1}:8080`, `server 127.0.0.1:${gateway.port}`] as const,
  )
  const site = replaced(text, [
    ...changes,
    ['listen 443 ssl http2', `listen 127.0.0.1:${port}`],
    ['  ssl_certificate gateway.pem;\n', ''],
    ['  ssl_certificate_key gateway.key;\n', ''],
    ['/var/log/nginx/sluice.log', join(folder, 'access.log')],
  ])
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = paths.map((path) => `${path}_temp_path ${folder}/${path};`).join(' ')
  // Started by root, nginx would drop its privileges and could not use the folder.
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  return `${user} worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events { worker_connections 1024; }
http { ${temporary}
${site}}
`
}

function replaced(text: string, changes: readonly (readonly [string, string])[]): string {
  return changes.reduce((result, [from, to]) => {
    if (!result.includes(from)) throw new Error(`the page has no '${from}'`)
    return result.replace(from, to)
  }, text)
}
