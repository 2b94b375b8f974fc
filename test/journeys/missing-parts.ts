/** Whether the parts that journeys fetch can be fetched here. */
import { shell } from './shell.js'

const PACKAGES_MS = 30_000
/** The mirror from which a base image is made. */
const DEBIAN_MIRROR = 'http://deb.debian.org/debian/dists/bookworm/Release'

/** Why packages cannot be installed here; null if they can. */
export async function packagesMissing(): Promise<string | null> {
  const flags = ['--fetch-retries=1', `--fetch-timeout=${String(PACKAGES_MS)}`]
  const { status } = await shell(['npm', 'view', ...flags, 'typescript', 'version'], { secret: true })
  return status === 0 ? null : 'the registry of npm cannot be reached'
}

/** Why a base image cannot be made here; null if it can. */
export async function debianMissing(): Promise<string | null> {
  const { status } = await shell(['curl', '-sfI', '--max-time', '30', '-o', '/dev/null', DEBIAN_MIRROR])
  return status === 0 ? null : `${DEBIAN_MIRROR} cannot be reached`
}

/**
 * The options of a test that needs these parts: skipped with the first reason. Throws under CI, where a
 * missing part is an error.
 */
export function needing(...reasons: readonly (string | null)[]): { readonly skip?: string } {
  const reason = reasons.find((each) => each !== null) ?? null
  if (reason === null) return {}
  if (process.env['CI'] === 'true') throw new Error(reason)
  return { skip: reason }
}
