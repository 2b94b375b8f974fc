/**
 * Goal: everything that the Dockerfile copies is in the build context, and no file with secrets is.
 * Method: the sources of its COPY instructions against the rules of .dockerignore; the last match wins.
 */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'

interface Rule {
  readonly pattern: string
  readonly isIncluded: boolean
}

const rules: readonly Rule[] = readFileSync('.dockerignore', 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ pattern: line.replace(/^!/, ''), isIncluded: line.startsWith('!') }))

/** Whether the file is sent to the builder: a rule for a folder holds for what is in it. */
function isSent(path: string): boolean {
  const parts = path.split('/')
  const paths = parts.map((_, at) => parts.slice(0, at + 1).join('/'))
  const last = rules.findLast(({ pattern }) => paths.some((each) => matches(each, pattern)))
  return last?.isIncluded ?? true
}

/** `*` matches any part of a name, and `**` before a name any folders. */
function matches(path: string, pattern: string): boolean {
  if (pattern.startsWith('**/')) return matches(path.split('/').at(-1) ?? '', pattern.slice(3))
  const parts = pattern.split('*').map((text) => text.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^/]*')}$`).test(path)
}

const copied = [...readFileSync('Dockerfile', 'utf8').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
  ([, sources = '']) => sources.split(' '),
)

void t.test('every source of COPY is in the build context', (t) => {
  t.ok(copied.length > 8)
  for (const source of copied) {
    t.ok(existsSync(source), source)
    t.ok(isSent(source), `.dockerignore lets ${source} pass`)
  }
  const lists = ['prices-by-preset.json', 'prices-genai-prices.json', 'prices-litellm.json']
  for (const name of ['gateway.yaml', 'gateway.redis.yaml', 'models.yaml', 'schema.json', ...lists]) {
    t.ok(isSent(`config/${name}`), name)
  }
  t.end()
})

void t.test('files with secrets are not', (t) => {
  for (const path of [
    ...[
      '.env',
      'config/.env',
      'config/.env.local',
      'config/tls.key',
      'config/secrets.yaml',
      'config/keys/a.pem',
    ],
    ...['src/.env', 'src/http/.env.production', 'scripts/release.key', 'src/id_ed25519', 'scripts/ca.pem'],
    ...[
      'config/gateway.local.yaml',
      'config/credentials.json',
      'config/.npmrc',
      '.ssh/id_rsa',
      '.aws/credentials',
    ],
    ...['data/sluice.db', 'node_modules/a/index.js', '.git/config', '.npmrc.local'],
  ]) {
    t.notOk(isSent(path), path)
  }
  t.end()
})
