/** Parses `sqlite:PATH`, the address of an embedded store. */

/** The path as written, or the reason why it cannot be a store. */
export type SqliteAddress = { readonly path: string } | { readonly problem: string }

const EXAMPLE = 'as in sqlite:./data/sluice.db'

/** Null for an address of another scheme. */
export function parseSqliteAddress(url: string): SqliteAddress | null {
  if (!url.startsWith('sqlite:')) return null
  const path = url.slice('sqlite:'.length)
  if (path.trim() === '') return { problem: `must have a file name after sqlite:, ${EXAMPLE}` }
  if (path.endsWith('/')) return { problem: `must be a file, not a folder, ${EXAMPLE}` }
  // Of sqlite:///srv/sluice.db the path is /srv/sluice.db.
  if (/^\/\/[^/]/.test(path)) return { problem: `must not have // after sqlite:, ${EXAMPLE}` }
  if (path === ':memory:') {
    return { problem: `must be a file, which all processes of the gateway open, ${EXAMPLE}` }
  }
  return { path }
}
