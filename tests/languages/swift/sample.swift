import Foundation
import class UIKit.UIView

let defaultDepth = 4

/// Something that floats.
public protocol Floating: AnyObject, Named {
    associatedtype Cargo
    var draught: Double { get }
    func load(_ cargo: Cargo) throws -> Bool
    init(name: String)
}

@objc public final class Barge<T: Weighed>: Vessel, Floating where T: Codable {
    static let limit = 90
    private(set) var hold: [T] = [], spare: Int = 0
    public var draught: Double {
        return Double(hold.count) * 0.2
    }

    public required init(name: String) {
        super.init(name: name)
        self.engine.start()
    }

    deinit {
        moor()
    }

    @discardableResult
    func load(_ cargo: T) throws -> Bool {
        let weight = cargo.weigh()
        guard weight < Barge.limit else { throw Fault.heavy(weight) }
        hold.append(cargo)
        return true
    }

    subscript(index: Int) -> T {
        return hold[index]
    }

    enum Fault: String, Error {
        case leak = "l", heavy
        indirect case chain
    }

    static func == (left: Barge, right: Barge) -> Bool {
        left === right
    }
}

struct Lock: Codable {
    var gates: Int
    typealias Level = Int
}

extension Barge: Equatable where T: Equatable {
    func swap() { hold.forEach { print($0) } }
}

actor Harbour {
    func dock(_ barge: Barge<Coal>) async { await Crane<Coal>(barge).lift() }
}

public func fill(_ lock: inout Lock) {
    lock.gates += 1
}
