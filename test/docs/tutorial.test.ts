/**
 * Goal: a reader who follows `docs/tutorial.md` to the letter gets the results that it describes.
 * Method: the configuration and the commands of the page run in order in one shell, with free ports. The
 * build is skipped, since `npm test` has done it. Every third day, and after a change of the page.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { freePort } from '../helpers/free-port.js'
import { anotherDay } from '../helpers/long-suite.js'
import { changedPaths } from '../runner/repository-files.js'

const run = promisify(execFile)
const PAGE = readFileSync('docs/tutorial.md', 'utf8')
const PORTS = ['9101', '9102', '8090', '9490']

/** The page with a free port in place of each of its ports. */
async function withFreePorts(text: string): Promise<string> {
  let changed = text
  for (const port of PORTS) changed = changed.replaceAll(port, String(await freePort()))
  return changed
}

const hasChanged = changedPaths()?.includes('docs/tutorial.md') ?? false

void t.test(
  'the commands of the tutorial run in order',
  { timeout: 180_000, skip: !hasChanged && anotherDay(0, 3) },
  async (t) => {
    const folder = t.testdir({})
    const built = ['dist', 'node_modules', 'package.json', 'config']
    for (const name of built) {
      symlinkSync(resolve(name), join(folder, name))
    }
    const page = await withFreePorts(PAGE)
    const blocks = [...page.matchAll(/^```(\w+)\n([\s\S]*?)\n```$/gm)]
    const [yaml] = blocks.filter(([, language]) => language === 'yaml')
    writeFileSync(join(folder, 'tutorial.yaml'), yaml?.[2] ?? '')
    const commands = blocks
      .filter(([, language, text = '']) => language === 'sh' && !text.includes('npm'))
      .map(([, , text = '']) => text)
    t.ok(commands.length >= 9)
    const cleanUp = 'trap "kill \\$gateway \\$first \\$second 2>/dev/null || true; wait" EXIT'
    const [ops = ''] = /(?<=ops_port: )\d+/.exec(page) ?? []
    const untilReloaded = `until curl -s http://127.0.0.1:${ops}/config | grep -q '"generation": *2'; do sleep 0.2; done`
    const script = ['set -e', cleanUp, ...commands].join('\n').replace('sleep 2', untilReloaded)
    writeFileSync(join(folder, 'tutorial.sh'), script)
    const { stdout } = await run('bash', ['tutorial.sh'], { cwd: folder })

    t.same(readdirSync(folder).sort(), [...built, 'tutorial.sh'].sort(), 'nothing is left')
    t.match(stdout, /valid \(2 upstreams, 2 routes/, 'check accepts the configuration')
    t.match(stdout, /"object": ?"chat\.completion"/, 'a chat completion')
    t.match(stdout, /data: \[DONE\]/, 'a stream of another provider, complete')
    t.match(stdout, /"type": ?"message"/, 'a reply in the format of Anthropic')
    t.match(stdout, /claude-sonnet-5-5 +1 +0/, 'the summary counts the request')
    t.match(stdout, /first, model gpt-5\.4: fallback/, 'the change takes effect')
    t.match(stdout, /x-sluice-attempts: second:upstream_unreachable, first:ok/, 'the fallback replies')
  },
)
