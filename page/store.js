/* One state, and views that are functions of it. A view names the values it depends on, and is
 * called when one of them has changed; all changes of one turn are one call. */
export function createStore(state) {
  const views = [];
  let pending = false;

  function tell() {
    pending = false;
    for (const look of views)
      look();
  }

  return {
    get state() {
      return state;
    },

    set(patch) {
      state = { ...state, ...patch };
      if (!pending) {
        pending = true;
        queueMicrotask(tell);
      }
    },

    /* select(state) is an array of values; view(state) is called now, and when one of them changes. */
    watch(select, view) {
      let seen = null;
      const look = () => {
        const now = select(state);
        if (seen && now.every((value, i) => Object.is(value, seen[i])))
          return;
        seen = now;
        view(state);
      };
      views.push(look);
      look();
    },
  };
}
