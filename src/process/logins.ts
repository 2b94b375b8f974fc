/**
 * Accepts access tokens of programs while the configuration has `login`: loads their code with the first such
 * generation.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Authenticator } from '../accounts/authentication/authenticator.js'
import type { LoginStore } from '../accounts/logins/logins.js'
import type { Config } from '../config/config.js'

export class Logins {
  private readonly authenticator: Pick<Authenticator, 'acceptLogins'>
  private readonly store: LoginStore
  private login: Config['login'] = null

  constructor(authenticator: Pick<Authenticator, 'acceptLogins'>, store: LoginStore) {
    this.authenticator = authenticator
    this.store = store
  }

  /** Puts the section of a generation in force; resolves when the code is loaded. */
  async adopt({ login }: Pick<Config, 'login'>): Promise<void> {
    if (isDeepStrictEqual(login, this.login)) return
    this.login = login
    if (login === null) {
      this.authenticator.acceptLogins(null)
      return
    }
    const { lookUpLogin } = await import('../accounts/logins/logins.js')
    // Another generation may have come in between.
    if (this.login !== login) return
    this.authenticator.acceptLogins((digest) => lookUpLogin(this.store, digest, login, Date.now()))
  }
}
